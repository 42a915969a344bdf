use super::{Canvas, Format, guard::push_neutralised};
use crate::{
    Result,
    id::{FacetType, Role},
    json::Value,
    text::{PARAMETER, PARAMETER_END},
    veil::{Call, Facet, TagSet},
};

/// Structure as tags in the text: `<my_turn>` around what the agent did, a facet's display name
/// as its tag, `<thought>`, `<tool_call name>` with `<parameter name>`, `<tool_result name>`.
///
/// A facet owns its tags. Content cannot forge any of them: see [`Canvas::guarded`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XmlFormat;

impl Format for XmlFormat {
    fn id(&self) -> &'static str {
        "xml"
    }

    fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        if let Some(call) = facet.call() {
            canvas.tag_of(&["<tool_call name=\"", &attribute(call.name), "\">\n"]);
            canvas.part_with(|out, tags| push_parameters(out, call, tags));
            let before = canvas.chunks();
            canvas.children(facet, "\n", |child, canvas| self.facet(child, canvas))?;
            if canvas.chunks() > before {
                canvas.formatting("\n");
            }
            canvas.tag("</tool_call>");
            return Ok(());
        }
        let is_result = facet.is_result();
        let display = facet.display_name.as_deref().filter(|name| !name.is_empty());
        if is_result {
            match facet.tool_name() {
                Some(name) => canvas.tag_of(&["<tool_result name=\"", &attribute(name), "\">\n"]),
                None => canvas.tag("<tool_result>\n"),
            }
            if facet.content.is_empty() {
                // A result without text answers its call too.
                canvas.part("");
            }
            self.body(facet, canvas)?;
            canvas.tag("\n</tool_result>");
        } else if !facet.says_something() {
        } else if let Some(display) = display {
            let tag = canvas.tag_name(facet, display);
            canvas.tag_of(&["<", &tag, ">\n"]);
            self.body(facet, canvas)?;
            canvas.tag_of(&["\n</", &tag, ">"]);
        } else if facet.facet_type == FacetType::THOUGHT {
            canvas.tag("<thought>");
            self.body(facet, canvas)?;
            canvas.tag("</thought>");
        } else {
            self.body(facet, canvas)?;
        }
        Ok(())
    }

    fn turn(&self, role: Role) -> Option<(&str, &str)> {
        (role == Role::Assistant).then_some(("<my_turn>\n\n", "\n\n</my_turn>"))
    }

    fn separator(&self, role: Role) -> &str {
        if role == Role::Assistant { "\n\n" } else { "\n" }
    }
}

impl XmlFormat {
    /// What the facet says, then its children, line by line.
    fn body(self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        canvas.guarded(&facet.content);
        canvas.children(facet, "\n", |child, canvas| self.facet(child, canvas))
    }
}

/// The parameters of a call, one a line; arguments that are no object stand as they are.
fn push_parameters(out: &mut String, call: Call<'_>, tags: &TagSet) {
    match (call.parameters, call.arguments) {
        (Some(Value::Object(parameters)), _) => {
            for (name, value) in parameters {
                out.push_str(PARAMETER);
                out.push_str(&attribute(name));
                out.push_str("\">");
                push_value(out, value, tags);
                out.push_str(PARAMETER_END);
                out.push('\n');
            }
        }
        (_, Some("")) | (None, None) => {}
        (_, Some(written)) => {
            push_neutralised(out, written, tags);
            out.push('\n');
        }
        (Some(value), None) => {
            push_neutralised(out, &value.to_string(), tags);
            out.push('\n');
        }
    }
}

/// A string as it is, anything else as JSON.
fn push_value(out: &mut String, value: &Value, tags: &TagSet) {
    match value {
        Value::String(text) => push_neutralised(out, text, tags),
        other => push_neutralised(out, &other.to_string(), tags),
    }
}

/// Text as the value of an attribute.
fn attribute(text: &str) -> std::borrow::Cow<'_, str> {
    let is_escaped = |byte| matches!(byte, b'&' | b'<' | b'>' | b'"' | b'\n' | b'\r');
    if !text.bytes().any(is_escaped) {
        return text.into();
    }
    let escape = |out: &mut String, c: char| match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\n' | '\r' => out.push(' '),
        c => out.push(c),
    };
    let mut out = String::with_capacity(text.len() + 8);
    text.chars().for_each(|c| escape(&mut out, c));
    out.into()
}
