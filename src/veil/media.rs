use super::PartContent;
use crate::{id::FacetType, json::Value};

/// What is known of an image, a sound or a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// The media type, for example `image/png`.
    pub media_type: Option<Box<str>>,
    /// The size in bytes, where the data is at hand.
    pub bytes: Option<u64>,
    /// The tokens that it takes by its provider's rule. `None` where nobody counted them: it counts
    /// as the text that stands for it.
    pub tokens: Option<u64>,
}

/// Where blocks have the media type, the data in base64, and an address that may be a data URL. No
/// other place in the library lists them.
const TYPES: [&str; 6] = [
    "/source/media_type",
    "/mimeType",
    "/mediaType",
    "/media_type",
    "/inlineData/mimeType",
    "/file/type",
];
const DATA: [&str; 7] = [
    "/source/data",
    "/data",
    "/data/data",
    "/inlineData/data",
    "/input_audio/data",
    "/file/base64",
    "/result",
];
const ADDRESSES: [&str; 10] = [
    "/image_url/url",
    "/image_url",
    "/imageUrl/url",
    "/imageUrl",
    "/image",
    "/source/url",
    "/url",
    "/data/url",
    "/file/file_data",
    "/file_data",
];

/// What a provider's block says of an image, a sound or a document, as it is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MediaBlock<'b> {
    pub(crate) media_type: Option<&'b str>,
    /// The data in base64; that of a text document is the text.
    pub(crate) data: Option<&'b str>,
    /// Where the block has an address or a data URL: what stands there.
    pub(crate) address: Option<&'b str>,
}

impl<'b> MediaBlock<'b> {
    pub(crate) fn of(block: &'b Value) -> Self {
        let first = |places: &[&str]| {
            places.iter().find_map(|place| block.pointer(place).and_then(Value::as_str))
        };
        let address = first(&ADDRESSES);
        let (declared, embedded) = address.and_then(data_url).unzip();
        let declared = declared.filter(|declared| !declared.is_empty());
        Self { media_type: first(&TYPES).or(declared), data: first(&DATA).or(embedded), address }
    }
}

impl Media {
    /// What a provider's block says of its data.
    pub(crate) fn of_block(block: &Value) -> Self {
        let MediaBlock { media_type, data, .. } = MediaBlock::of(block);
        let bytes = data.map(|data| base64_len(data) as u64);
        Self { media_type: media_type.map(Box::from), bytes, tokens: None }
    }
}

/// Whether a document is a text, whose tokens are counted like those of any other.
pub(crate) fn is_text_document(block: &Value) -> bool {
    let Some(source) = block.get("source") else { return false };
    match source.str_at("type") {
        Some("text") => true,
        Some("content") => source.get("content").is_some_and(|held| {
            held.as_array().is_none_or(|of| of.iter().all(|of| of.str_at("type") == Some("text")))
        }),
        _ => false,
    }
}

impl PartContent {
    /// What a facet of this type is whose provider's block is kept whole.
    pub(crate) fn of_block(facet_type: &FacetType, block: &Value) -> Self {
        if *facet_type == FacetType::IMAGE {
            return Self::Image(Media::of_block(block));
        }
        match block.str_at("type") {
            _ if *facet_type != FacetType::OPAQUE => Self::of_type(facet_type),
            Some("input_audio" | "audio") => Self::Audio(Media::of_block(block)),
            Some("document" | "file" | "input_file") if !is_text_document(block) => {
                Self::Document(Media::of_block(block))
            }
            Some("compaction") => Self::Compaction,
            _ => Self::Opaque,
        }
    }
}

/// The media type and the data of `data:TYPE;base64,DATA`.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((head.split(';').next().unwrap_or_default(), data))
}

/// The number of bytes that this much base64 stands for.
pub(crate) fn base64_len(data: &str) -> usize {
    let data = data.trim_end_matches('=');
    data.len() / 4 * 3 + [0, 0, 1, 2].get(data.len() % 4).copied().unwrap_or(0)
}
