use std::collections::HashSet;

use crate::{
    Error, Result,
    json::{Object, ObjectExt, Value},
};

/// The most letters of a name.
const NAME: usize = 128;

/// A tool that a model may call: its name, what it does, and the JSON schema of its arguments.
///
/// ```
/// use afterimage::{json, session::Tool};
///
/// let schema = json::read(br#"{"type": "object", "properties": {"city": {"type": "string"}}}"#)?;
/// let tool = Tool::new("tide", "When high water is.", schema);
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tool(Value);

impl Tool {
    /// A tool of the agent's own.
    pub fn new(name: &str, description: &str, parameters: Value) -> Self {
        let mut tool = Object::new();
        tool.put("name", name);
        tool.put("description", description);
        tool.put("parameters", parameters);
        Self(tool.into())
    }

    /// A definition that goes to the provider as it is: a tool that the provider runs, or one with
    /// members of the provider's own.
    pub fn as_written(definition: Value) -> Self {
        Self(definition)
    }

    /// As they are kept.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for what no provider takes: a name that is there
    /// twice, or has other letters than those of ASCII, digits, `_` and `-`, a schema that is none.
    pub(super) fn all_into_values(tools: impl IntoIterator<Item = Self>) -> Result<Vec<Value>> {
        let mut names = HashSet::new();
        let expected = |what: &str, found: &Value| Err(Error::expected(what, found).under("tools"));
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        tools
            .into_iter()
            .map(|Self(tool)| {
                if tool.as_object().is_none() {
                    return expected("the definition of a tool", &tool);
                }
                let function = tool.get("function").unwrap_or(&tool);
                let name = function.str_at("name");
                if let Some(name) = name
                    && !((1..=NAME).contains(&name.len()) && name.chars().all(is_plain))
                {
                    return expected("a name of letters, digits, `_` and `-`", &name.into());
                }
                if name.is_some_and(|name| !names.insert(name.to_owned())) {
                    return expected("tools with names of their own", &name.into());
                }
                let mut schemas = ["parameters", "input_schema"].into_iter();
                let schema = schemas.find_map(|key| function.get(key));
                match schema.filter(|schema| schema.as_object().is_none()) {
                    Some(schema) => expected("a JSON schema, which is an object", schema),
                    None => Ok(tool),
                }
            })
            .collect()
    }
}
