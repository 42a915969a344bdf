use super::{Canvas, Format};
use crate::{Result, id::Role, veil::Facet};

/// No tags at all: structure lives in the chunks' parts, and the chunks are the raw strings of a
/// message's fields, as providers with native tool calls want them. A call's text is its
/// arguments as the model wrote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NativeFormat;

impl Format for NativeFormat {
    fn id(&self) -> &'static str {
        "native"
    }

    fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
        match facet.call() {
            Some(call) => match (call.arguments, call.parameters) {
                (Some(written), _) => canvas.part(written),
                (None, Some(parameters)) => canvas.json(parameters),
                (None, None) => canvas.part(""),
            },
            None if facet.is_result() => canvas.part(&facet.content),
            None => canvas.text(&facet.content),
        }
        canvas.children(facet, "", |child, canvas| self.facet(child, canvas))
    }

    fn separator(&self, _role: Role) -> &'static str {
        ""
    }

    fn frame_separator(&self) -> &'static str {
        ""
    }
}
