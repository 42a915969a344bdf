use super::{Canvas, Format};
use crate::{Result, id::FacetType, veil::Facet};

/// Text for people: labels in brackets, nothing escaped. Its labels are no structure to rely on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainFormat;

impl Format for PlainFormat {
    fn id(&self) -> &'static str {
        "plain"
    }

    fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        if let Some(call) = facet.call() {
            canvas.tag(&format!("[call {}] ", call.name));
            match (call.arguments, call.parameters) {
                (Some(written), _) => canvas.text(written),
                (None, Some(parameters)) => canvas.json(parameters),
                (None, None) => {}
            }
        } else {
            let is_result = facet.is_result();
            let label = match facet.tool_name() {
                Some(name) if is_result => Some(format!("[result {name}]\n")),
                None if is_result => Some("[result]\n".to_owned()),
                _ => facet.display_name.as_ref().map(|name| format!("{name}: ")),
            };
            let says = facet.says_something();
            if let Some(label) = label.filter(|_| says) {
                canvas.tag(&label);
            } else if facet.facet_type == FacetType::THOUGHT && says {
                canvas.tag("[thought] ");
            }
            if is_result {
                canvas.part(&facet.content);
            } else {
                canvas.text(&facet.content);
            }
        }
        canvas.children(facet, "\n", |child, canvas| self.facet(child, canvas))
    }
}
