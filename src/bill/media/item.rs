//! One image, sound or document.

use super::{
    dimensions::{base64_beginning, image_size},
    documents::{page_rule, pdf_pages},
    rules::{ImageDetail, ImageRule, MediaRule},
};
use crate::{
    id::FacetId,
    json::{self, Value},
    veil::{Facet, Frame, MediaBlock, PartContent, is_text_document},
};

/// How much of a file is looked at for its size: a photograph may begin with a preview of itself.
const LOOKED_AT: usize = 256 << 10;

crate::json::name_enum! {
    /// What a medium is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum MediaKind {
        /// An image.
        Image = "image",
        /// A sound.
        Audio = "audio",
        /// A document, as a PDF.
        Document = "document",
    }
}

crate::json::name_enum! {
    /// Why nobody knows what a medium costs.
    #[non_exhaustive]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum MediaGap {
        /// No model is named.
        Model = "noModel",
        /// No rule for the model is known.
        Rule = "noRule",
        /// Its size is not known: it stands elsewhere, or is of another format.
        Size = "noSize",
    }
}

/// An image, a sound or a document that a frame or a request holds, with what the rules count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaItem {
    /// The facet that stands for it; `None` where it was found in the body of a request.
    pub facet: Option<FacetId>,
    /// What it is.
    pub kind: MediaKind,
    /// How closely the model is to look at it.
    pub detail: ImageDetail,
    /// What its source says that it costs.
    stated: Option<u64>,
    size: Option<MediaSize>,
}

/// What the rules count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MediaSize {
    Pixels(u32, u32),
    Pages(u64),
}

impl MediaSize {
    /// The size of what a provider's block holds.
    fn of_block(block: &Value) -> Option<Self> {
        let MediaBlock { data, address, .. } = MediaBlock::of(block);
        let data = data.or(address)?;
        let beginning = base64_beginning(data, LOOKED_AT)?;
        if beginning.starts_with(b"%PDF-") {
            return pdf_pages(&base64_beginning(data, usize::MAX)?).map(Self::Pages);
        }
        image_size(&beginning).map(|(width, height)| Self::Pixels(width, height))
    }
}

impl MediaItem {
    /// The media that a frame adds, in their order. Looks at the headers of files, and at the whole
    /// of a PDF; linear in the facets besides.
    pub fn of_frame(frame: &Frame) -> Vec<Self> {
        let mut items = Vec::new();
        for facet in frame.added() {
            Self::add_facet(facet, &mut items);
        }
        items
    }

    fn add_facet(facet: &Facet, items: &mut Vec<Self>) {
        let part = facet.part.as_deref();
        let of = part.and_then(|part| {
            let (kind, media) = match &part.content {
                PartContent::Image(media) => (MediaKind::Image, media),
                PartContent::Audio(media) => (MediaKind::Audio, media),
                PartContent::Document(media) => (MediaKind::Document, media),
                _ => return None,
            };
            let item = Self::of_block(kind, part.source.native.as_ref().unwrap_or(&Value::Null));
            Some(Self { facet: Some(facet.id.clone()), stated: media.tokens, ..item })
        });
        items.extend(of);
        facet.children.iter().for_each(|child| Self::add_facet(child, items));
    }

    /// What a provider's block holds.
    fn of_block(kind: MediaKind, block: &Value) -> Self {
        let places =
            ["/image_url/detail", "/detail", "/mediaResolution/level", "/media_resolution/level"];
        let named = places.into_iter().find_map(|at| block.pointer(at).and_then(Value::as_str));
        let detail = named.map_or(ImageDetail::Auto, ImageDetail::from_name);
        Self { facet: None, kind, detail, stated: None, size: MediaSize::of_block(block) }
    }

    /// The media in the JSON of a request, or of a part of it, wherever they stand. Parses it.
    pub(in crate::bill) fn of_json(text: &str) -> Vec<Self> {
        let value = json::read_mended(text.as_bytes()).map_or(Value::Null, |(value, _)| value);
        let mut items = Vec::new();
        Self::add_blocks(&value, &mut items);
        items
    }

    fn add_blocks(value: &Value, items: &mut Vec<Self>) {
        match value {
            Value::Array(list) => list.iter().for_each(|value| Self::add_blocks(value, items)),
            Value::Object(object) => {
                let kind = value.str_at("type").and_then(kind_of_block);
                // The definition of a tool may say "type": "file"; blocks hold what they are of.
                let has_data =
                    ["source", "image_url", "data", "file", "file_data", "file_id", "input_audio"];
                let is_block = has_data.iter().any(|key| object.contains_key(key));
                match kind.filter(|_| is_block && !is_text_document(value)) {
                    Some(kind) => items.push(Self::of_block(kind, value)),
                    None => object.values().for_each(|value| Self::add_blocks(value, items)),
                }
            }
            _ => {}
        }
    }

    /// The tokens for a model and the rule that says so.
    ///
    /// # Errors
    /// [`MediaGap`]: why it is unknown. It is never zero for that.
    pub fn tokens(&self, model: Option<&str>) -> Result<(u64, MediaRule), MediaGap> {
        if let Some(stated) = self.stated {
            return Ok((stated, MediaRule::Stated));
        }
        let model = model.ok_or(MediaGap::Model)?;
        match (self.kind, self.size) {
            (MediaKind::Audio, _) => Err(MediaGap::Rule),
            (_, Some(MediaSize::Pages(pages))) => {
                let (page, rule) = page_rule(model).ok_or(MediaGap::Rule)?;
                pages.checked_mul(page).map(|tokens| (tokens, rule)).ok_or(MediaGap::Size)
            }
            (_, Some(MediaSize::Pixels(width, height))) => {
                let rule = ImageRule::of(model).ok_or(MediaGap::Rule)?;
                let tokens = rule.tokens((width, height), self.detail).ok_or(MediaGap::Size)?;
                Ok((tokens, rule.name()))
            }
            // Each image costs the same, whatever its size.
            (MediaKind::Image, None)
                if ImageRule::of(model) == Some(ImageRule::GeminiResolution) =>
            {
                let rule = ImageRule::GeminiResolution;
                rule.tokens((1, 1), self.detail).map(|of| (of, rule.name())).ok_or(MediaGap::Size)
            }
            (_, None) if ImageRule::of(model).is_none() => Err(MediaGap::Rule),
            (_, None) => Err(MediaGap::Size),
        }
    }
}

/// What a block of this type is.
fn kind_of_block(name: &str) -> Option<MediaKind> {
    Some(match name {
        "image" | "image_url" | "input_image" | "computer_screenshot" | "media" => MediaKind::Image,
        "input_audio" | "audio" => MediaKind::Audio,
        "document" | "file" | "input_file" => MediaKind::Document,
        _ => return None,
    })
}
