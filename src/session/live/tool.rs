use crate::json::{Object, ObjectExt, Value};

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

    /// As it is kept.
    pub(super) fn into_value(self) -> Value {
        self.0
    }
}
