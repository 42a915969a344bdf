//! Images, from whatever way a source has them to the way of a provider.

use super::{owned::OwnedJson, turns::Item};
use crate::{hud::Owner, veil::MediaBlock};

/// The kinds of images that all providers take.
const MEDIA_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Where an image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Image<'a> {
    Url(&'a str),
    Data { media_type: &'a str, base64: &'a str },
}

impl<'a> Image<'a> {
    /// How closely the model looks at an image, as the source says.
    pub(super) fn detail(item: &Item<'a>) -> Option<&'a str> {
        let block = item.source()?.native.as_ref()?;
        block.pointer("/image_url/detail").or_else(|| block.get("detail"))?.as_str()
    }

    /// The image of an item; `None` where it is known by a file's id, is of a kind that no
    /// provider takes, or is no image at all.
    pub(super) fn of(item: &Item<'a>) -> Option<Self> {
        let block = item.source()?.native.as_ref()?;
        let MediaBlock { media_type, data, address } = MediaBlock::of(block);
        match (data, address) {
            (Some(base64), _) => Self::from_data(base64, media_type),
            (None, Some(address)) => Self::from_url(address, media_type),
            (None, None) => None,
        }
    }

    fn from_url(url: &'a str, media_type: Option<&'a str>) -> Option<Self> {
        if url.contains("://") && !url.starts_with("data:") {
            return Some(Self::Url(url));
        }
        Self::from_data(url, media_type)
    }

    fn from_data(base64: &'a str, media_type: Option<&'a str>) -> Option<Self> {
        let media_type = media_type.unwrap_or("image/png");
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        let is_image = MEDIA_TYPES.contains(&media_type)
            && !base64.is_empty()
            && base64.bytes().all(is_base64);
        is_image.then_some(Self::Data { media_type, base64 })
    }

    /// As an address; data is a data URL.
    pub(super) fn url(self, owner: &Owner) -> OwnedJson {
        match self {
            Self::Url(url) => OwnedJson::of_text(url, owner),
            Self::Data { media_type, base64 } => {
                OwnedJson::of_text(&format!("data:{media_type};base64,{base64}"), owner)
            }
        }
    }

    /// As a `source` of Anthropic's Messages.
    pub(super) fn source(self, owner: &Owner) -> OwnedJson {
        match self {
            Self::Url(url) => OwnedJson::map([
                ("type", OwnedJson::form("url")),
                ("url", OwnedJson::of_text(url, owner)),
            ]),
            Self::Data { media_type, base64 } => OwnedJson::map([
                ("type", OwnedJson::form("base64")),
                ("media_type", OwnedJson::of_text(media_type, owner)),
                ("data", OwnedJson::of_text(base64, owner)),
            ]),
        }
    }
}
