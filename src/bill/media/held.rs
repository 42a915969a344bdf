//! The media that requests hold: each is looked at once, however many requests hold it.

use std::{collections::HashMap, sync::Arc};

use super::{MediaItem, rules::ImageRule};
use crate::{
    Result,
    id::FrameSeq,
    request::{Exchange, PartKind, Recording, Request, RequestHead, RequestPart},
    veil::History,
};

/// The images, sounds and documents that a request holds, by a model's rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MediaCount {
    /// How many there are.
    pub parts: u64,
    /// The tokens of those whose size and rule are known.
    pub tokens: u64,
    /// How many others there are: what they cost is unknown, and not zero.
    pub unknown: u64,
}

impl MediaCount {
    /// Adds an item by the rule of a model.
    pub fn add(&mut self, item: &MediaItem, model: Option<&str>) {
        let tokens = item.tokens(model).ok();
        self.parts += 1;
        self.unknown += u64::from(tokens.is_none());
        self.tokens = self.tokens.saturating_add(tokens.map_or(0, |(tokens, _)| tokens));
    }

    fn join(self, other: Self, join: fn(u64, u64) -> u64) -> Self {
        Self {
            parts: join(self.parts, other.parts),
            tokens: join(self.tokens, other.tokens),
            unknown: join(self.unknown, other.unknown),
        }
    }
}

/// The media of a history, by frame, for one model.
#[derive(Debug, Default)]
pub(in crate::bill) struct FrameMedia {
    items: Vec<(FrameSeq, MediaItem)>,
    /// For each rule the sums up to each item.
    sums: HashMap<Option<ImageRule>, Vec<MediaCount>>,
}

impl FrameMedia {
    /// Linear in the frames.
    pub(in crate::bill) fn of(history: &History) -> Self {
        let frames = history.frames();
        let mut items = Vec::new();
        for frame in (0..frames.len()).filter_map(|index| frames.get(index)) {
            let of = MediaItem::of_frame(&frame);
            items.extend(of.into_iter().map(|item| (frame.sequence, item)));
        }
        Self { items, sums: HashMap::new() }
    }

    /// The items of a frame.
    pub(in crate::bill) fn in_frame(&self, frame: FrameSeq) -> &[(FrameSeq, MediaItem)] {
        let from = self.items.partition_point(|(of, _)| *of < frame);
        let to = self.items.partition_point(|(of, _)| *of <= frame);
        self.items.get(from..to).unwrap_or_default()
    }

    /// What the frames up to `to` hold, without the frames of these ranges. O(log n) for each, and
    /// a walk over the items for each rule.
    fn count(
        &mut self,
        to: FrameSeq,
        without: impl Iterator<Item = (FrameSeq, FrameSeq)>,
        model: Option<&str>,
    ) -> MediaCount {
        let Self { items, sums } = self;
        if items.is_empty() {
            return MediaCount::default();
        }
        // A model that is not named counts nothing but what the source says; so does one without a
        // rule.
        let rule = model.and_then(ImageRule::of);
        let sums = sums.entry(rule).or_insert_with(|| {
            let mut sum = MediaCount::default();
            let add = |(_, item): &(FrameSeq, MediaItem)| {
                sum.add(item, model);
                sum
            };
            items.iter().map(add).collect()
        });
        let until = |end: usize| {
            let last = end.checked_sub(1).and_then(|last| sums.get(last));
            last.copied().unwrap_or_default()
        };
        let end = |frame: FrameSeq| items.partition_point(|(of, _)| *of <= frame);
        let mut count = until(end(to));
        for (from, last) in without.filter(|(from, _)| *from <= to) {
            let start = items.partition_point(|(of, _)| *of < from);
            let replaced = until(end(last.min(to))).join(until(start), u64::saturating_sub);
            count = count.join(replaced, u64::saturating_sub);
        }
        count
    }
}

/// What the requests of a recording hold besides text.
pub(in crate::bill) struct RequestMedia<'r> {
    recording: &'r Recording,
    sessions: HashMap<Arc<str>, FrameMedia>,
    /// The last request without its messages.
    head: Option<RequestHead>,
}

impl<'r> RequestMedia<'r> {
    pub(in crate::bill) fn new(recording: &'r Recording) -> Self {
        Self { recording, sessions: HashMap::new(), head: None }
    }

    /// The media of a session.
    pub(in crate::bill) fn session(&mut self, name: &Arc<str>) -> &mut FrameMedia {
        let recording = self.recording;
        let new = || recording.history(name).map(FrameMedia::of).unwrap_or_default();
        self.sessions.entry(Arc::clone(name)).or_insert_with(new)
    }

    /// What the request of an exchange holds, by the rule of its model.
    pub(in crate::bill) fn of(&mut self, exchange: &Exchange) -> Result<MediaCount> {
        let (recording, model) = (self.recording, exchange.model.as_deref());
        if let Some((to, blocks)) = recording.in_force(exchange.number) {
            let replaced = blocks.iter().map(|block| (block.from, block.to));
            return Ok(self.session(&exchange.session).count(to, replaced, model));
        }
        let outlined = recording.outlined(exchange.number)?;
        let request = outlined.request();
        let mut count = MediaCount::default();
        let mut add = |item: &MediaItem| count.add(item, model);
        let known = self.head.take().filter(|head| outlined.has_head(head));
        let Some(head) = known.or_else(|| outlined.head()) else {
            for part in request.parts() {
                self.of_part(exchange, request, &part).iter().for_each(&mut add);
            }
            return Ok(count);
        };
        for part in head.request().parts() {
            self.of_part(exchange, head.request(), &part).iter().for_each(&mut add);
        }
        self.head = Some(head);
        for (index, place) in outlined.messages().iter().enumerate() {
            if let Some(frame) = request.frame_of(index) {
                let items = self.session(&exchange.session).in_frame(frame);
                items.iter().for_each(|(_, item)| add(item));
            } else {
                let written = request.text().part(place.clone()).unwrap_or_default();
                MediaItem::of_json(&written).iter().for_each(&mut add);
            }
        }
        Ok(count)
    }

    /// The media in a part of a recorded request: those of the frame that it is. The JSON of a part
    /// that is no frame is read.
    pub(in crate::bill) fn of_part(
        &mut self,
        exchange: &Exchange,
        request: &Request,
        part: &RequestPart,
    ) -> Vec<MediaItem> {
        if !matches!(part.kind, PartKind::System { .. } | PartKind::Message { .. }) {
            return Vec::new();
        }
        if let Some(frame) = part.frame() {
            let items = self.session(&exchange.session).in_frame(frame);
            return items.iter().map(|(_, item)| item.clone()).collect();
        }
        MediaItem::of_json(request.body().get(part.range.clone()).unwrap_or_default())
    }
}

/// The images, sounds and documents of each request of a recording, in the order of its exchanges.
/// The texts that stand for them in a context ("`[image/png, 512 bytes]`") are counted as text
/// besides.
///
/// Each is looked at once, with its frame. A request that was worked out costs O(log n) then, and
/// one that was recorded O(messages) and a scan of what it does not share with the one before it; a
/// message of it that is in no frame is parsed.
///
/// # Errors
/// Those of [`Recording::request`].
pub fn media_counts(recording: &Recording) -> Result<Vec<MediaCount>> {
    let mut held = RequestMedia::new(recording);
    recording.exchanges().iter().map(|exchange| held.of(exchange)).collect()
}
