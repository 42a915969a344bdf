use std::fmt::Write;

use super::{Canvas, Format};
use crate::{
    Result,
    id::{FacetType, Role},
    json::Value,
    text::tag_name,
    veil::{Call, Facet},
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
            canvas.tag(&format!("<tool_call name=\"{}\">\n", attribute(call.name)));
            let body = parameters(call, canvas);
            canvas.part(&body);
            for child in &facet.children {
                canvas.nested(child, |canvas| self.facet(child, canvas))?;
                canvas.formatting("\n");
            }
            canvas.tag("</tool_call>");
            return Ok(());
        }
        let is_result = facet.is_result();
        let display = facet.display_name.as_deref().filter(|name| !name.is_empty());
        if is_result {
            match facet.tool_name() {
                Some(name) => canvas.tag(&format!("<tool_result name=\"{}\">\n", attribute(name))),
                None => canvas.tag("<tool_result>\n"),
            }
            self.body(facet, canvas)?;
            canvas.tag("\n</tool_result>");
        } else if facet.content.is_empty() && facet.children.is_empty() {
        } else if let Some(display) = display {
            let tag = tag_name(display);
            canvas.tag(&format!("<{tag}>\n"));
            self.body(facet, canvas)?;
            canvas.tag(&format!("\n</{tag}>"));
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

    fn separator(&self, role: Role) -> &'static str {
        if role == Role::Assistant { "\n\n" } else { "\n" }
    }
}

impl XmlFormat {
    /// What the facet says, then its children, line by line.
    fn body(self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        canvas.guarded(&facet.content);
        let mut wrote = !facet.content.is_empty();
        for child in &facet.children {
            if wrote {
                canvas.formatting("\n");
            }
            canvas.nested(child, |canvas| self.facet(child, canvas))?;
            wrote = true;
        }
        Ok(())
    }
}

/// The parameters of a call, one a line; arguments that are no object stand as they are.
fn parameters(call: Call<'_>, canvas: &Canvas<'_>) -> String {
    let mut out = String::new();
    match (call.parameters, call.arguments) {
        (Some(Value::Object(parameters)), _) => {
            for (name, value) in parameters {
                // Writing to a string cannot fail.
                let _ = write!(out, "<parameter name=\"{}\">", attribute(name));
                match value {
                    Value::String(text) => out.push_str(&canvas.guard(text)),
                    other => out.push_str(&canvas.guard(&other.to_string())),
                }
                out.push_str("</parameter>\n");
            }
        }
        (_, Some(written)) if !written.is_empty() => {
            out.push_str(&canvas.guard(written));
            out.push('\n');
        }
        (Some(value), None) => {
            out.push_str(&canvas.guard(&value.to_string()));
            out.push('\n');
        }
        (_, _) => {}
    }
    out
}

/// Text as the value of an attribute.
fn attribute(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\n', '\r']) {
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
