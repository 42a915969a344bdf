//! Images and documents in requests: what they cost by the rules that providers publish.

mod dimensions;
mod documents;
mod rules;

use std::{collections::HashMap, sync::Arc};

use self::dimensions::base64_beginning;
use crate::{
    Result,
    id::FrameSeq,
    json::Value,
    request::{Exchange, Recording},
    veil::{Facet, FacetChange, Media, PartContent, data_url},
};

pub use dimensions::image_size;
pub use documents::{document_tokens, pdf_pages};
pub use rules::image_tokens;

/// How much of a file is looked at for its size: a photograph may begin with a preview of itself.
const LOOKED_AT: usize = 256 << 10;
/// Where blocks have their data.
const DATA: [&str; 12] = [
    "/source/data",
    "/data",
    "/inlineData/data",
    "/file/file_data",
    "/file_data",
    "/image_url/url",
    "/image_url",
    "/imageUrl/url",
    "/imageUrl",
    "/image",
    "/source/url",
    "/url",
];

/// The images, sounds and documents that a request holds, by a model's rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaCount {
    /// How many there are.
    pub parts: u64,
    /// The tokens of those whose size and rule are known.
    pub tokens: u64,
    /// How many others there are: what they cost is unknown, and not zero.
    pub unknown: u64,
}

impl MediaCount {
    fn add(&mut self, tokens: Option<u64>) {
        self.parts += 1;
        self.unknown += u64::from(tokens.is_none());
        self.tokens = self.tokens.saturating_add(tokens.unwrap_or(0));
    }
}

/// An image, a sound or a document of a session.
#[derive(Clone, Copy, Debug)]
struct Held {
    frame: FrameSeq,
    /// What its source says that it costs.
    stated: Option<u64>,
    size: Option<MediaSize>,
}

impl Held {
    fn tokens(&self, model: Option<&str>) -> Option<u64> {
        self.stated.or_else(|| self.size?.tokens(model?))
    }
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
        let text = DATA.iter().find_map(|place| block.pointer(place).and_then(Value::as_str))?;
        let data = data_url(text).map_or(text, |(_, data)| data);
        let beginning = base64_beginning(data, LOOKED_AT)?;
        if beginning.starts_with(b"%PDF-") {
            return pdf_pages(&base64_beginning(data, usize::MAX)?).map(Self::Pages);
        }
        image_size(&beginning).map(|(width, height)| Self::Pixels(width, height))
    }

    fn tokens(self, model: &str) -> Option<u64> {
        match self {
            Self::Pixels(width, height) => image_tokens(model, width, height),
            Self::Pages(pages) => document_tokens(model, pages),
        }
    }
}

/// What requests hold besides text.
pub(super) struct HeldMedia<'r> {
    recording: &'r Recording,
    sessions: HashMap<Arc<str>, Vec<Held>>,
}

impl<'r> HeldMedia<'r> {
    pub(super) fn new(recording: &'r Recording) -> Self {
        Self { recording, sessions: HashMap::new() }
    }

    /// What the request of an exchange holds, by the rule of its model.
    pub(super) fn of(&mut self, exchange: &Exchange) -> Result<MediaCount> {
        let (recording, model) = (self.recording, exchange.model.as_deref());
        let mut count = MediaCount::default();
        let Some((to, blocks)) = recording.in_force(exchange.number) else {
            let request = recording.request(exchange.number)?;
            let body = crate::json::read(request.body().as_bytes()).unwrap_or(Value::Null);
            for_each_block(&body, &mut |block| {
                count.add(MediaSize::of_block(block).and_then(|size| size.tokens(model?)));
            });
            return Ok(count);
        };
        let name = &exchange.session;
        if !self.sessions.contains_key(name) {
            self.sessions.insert(Arc::clone(name), held_by(recording, name));
        }
        let is_replaced =
            |frame| blocks.iter().any(|block| block.from <= frame && frame <= block.to);
        let held = self.sessions.get(name).into_iter().flatten();
        held.filter(|held| held.frame <= to && !is_replaced(held.frame))
            .for_each(|held| count.add(held.tokens(model)));
        Ok(count)
    }
}

/// The images, sounds and documents of each request of a recording, in the order of its exchanges.
/// The texts that stand for them in a context ("`[image/png, 512 bytes]`") are counted as text
/// besides.
///
/// Costs a walk over the frames, and over the JSON of recorded requests.
///
/// # Errors
/// Those of [`Recording::request`].
pub fn media_counts(recording: &Recording) -> Result<Vec<MediaCount>> {
    let mut held = HeldMedia::new(recording);
    recording.exchanges().iter().map(|exchange| held.of(exchange)).collect()
}

fn held_by(recording: &Recording, name: &str) -> Vec<Held> {
    let Some(history) = recording.history(name) else { return Vec::new() };
    let frames = history.frames();
    let mut held = Vec::new();
    for frame in (0..frames.len()).filter_map(|index| frames.get(index)) {
        for op in &frame.ops {
            if let FacetChange::Add(facet) = &op.change {
                add_facet(facet, frame.sequence, &mut held);
            }
        }
    }
    held
}

fn add_facet(facet: &Facet, frame: FrameSeq, held: &mut Vec<Held>) {
    let part = facet.part.as_deref();
    if let Some(
        PartContent::Image(media) | PartContent::Audio(media) | PartContent::Document(media),
    ) = part.map(|part| &part.content)
    {
        let Media { tokens: stated, .. } = *media;
        let block = part.and_then(|part| part.source.native.as_ref());
        held.push(Held { frame, stated, size: block.and_then(MediaSize::of_block) });
    }
    facet.children.iter().for_each(|child| add_facet(child, frame, held));
}

/// Finds the blocks of images, sounds and documents, wherever they stand.
fn for_each_block(value: &Value, take: &mut impl FnMut(&Value)) {
    const MEDIA: [&str; 9] = [
        "image",
        "image_url",
        "input_image",
        "input_audio",
        "audio",
        "document",
        "file",
        "input_file",
        "media",
    ];
    match value {
        Value::Array(list) => list.iter().for_each(|value| for_each_block(value, take)),
        Value::Object(object) => {
            let is_media = value.str_at("type").is_some_and(|kind| MEDIA.contains(&kind));
            // The definition of a tool may say "type": "file"; blocks hold what they are of.
            let has_data =
                ["source", "image_url", "data", "file", "file_data", "file_id", "input_audio"];
            if is_media && has_data.iter().any(|key| object.contains_key(key)) {
                take(value);
            } else {
                object.values().for_each(|value| for_each_block(value, take));
            }
        }
        _ => {}
    }
}
