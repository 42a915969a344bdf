use std::sync::Arc;

use super::{Canvas, NativeFormat, PlainFormat, XmlFormat};
use crate::{Result, id::Role, veil::Facet};

/// How facets look. The renderer does everything around them.
///
/// Formats are stateless: the same facet gives the same text. A format that marks structure in
/// the text must write what facets say through [`Canvas::guarded`], so that content cannot forge
/// structure.
///
/// ```
/// use afterimage::{Result, hud::{Canvas, Format}, veil::Facet};
///
/// /// Events as a bulleted list.
/// struct Bullets;
///
/// impl Format for Bullets {
///     fn id(&self) -> &str {
///         "bullets"
///     }
///
///     fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()> {
///         canvas.tag("- ");
///         canvas.text(&facet.content);
///         canvas.children(facet, "\n", |child, canvas| self.facet(child, canvas))
///     }
/// }
/// ```
pub trait Format: Send + Sync {
    /// The stable name of the format. It becomes part of what identifies a snapshot.
    fn id(&self) -> &str;

    /// Writes one facet. Of a facet that writes nothing, nothing is shown.
    ///
    /// # Errors
    /// Whatever the format fails with; the frame is then not captured.
    fn facet(&self, facet: &Facet, canvas: &mut Canvas<'_>) -> Result<()>;

    /// What stands before and after a frame that is spoken in `role` and shows something.
    fn turn(&self, _role: Role) -> Option<(&str, &str)> {
        None
    }

    /// What stands between two facets of a frame that is spoken in `role`.
    #[allow(clippy::unnecessary_literal_bound, reason = "other formats give what they hold")]
    fn separator(&self, _role: Role) -> &str {
        "\n"
    }

    /// What stands between two frames that are merged into one message.
    #[allow(clippy::unnecessary_literal_bound, reason = "other formats give what they hold")]
    fn frame_separator(&self) -> &str {
        "\n\n"
    }
}

/// The built-in format with this name: `xml`, `plain` or `native`.
pub fn format_by_name(name: &str) -> Option<Arc<dyn Format>> {
    match name {
        "xml" => Some(Arc::new(XmlFormat)),
        "plain" => Some(Arc::new(PlainFormat)),
        "native" => Some(Arc::new(NativeFormat)),
        _ => None,
    }
}
