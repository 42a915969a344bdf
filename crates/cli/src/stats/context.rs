//! The figures of contexts: of all requests of a file together, or of one.

use afterimage::{
    bill::{MediaCount, media_counts},
    hud::RenderedContext,
    json::{Object, Value},
    request::{PartKind, Provenance, Recording, Request},
    session::RequestSums,
    tokens::Chars4,
    window::ContextSize,
};

use super::ledger::Ledger;
use crate::{
    failure::Outcome, input::Source, json::object, labels::RecordingLabels, lens::Lens, recorded,
};

/// What the requests of a file come to.
pub(super) struct Contexts {
    pub(super) sums: RequestSums,
    pub(super) provenance: Provenance,
}

impl Contexts {
    /// Adds the members of `stats --json`.
    pub(super) fn put(&self, json: &mut Object) {
        let RequestSums { requests, tokens, last, .. } = self.sums;
        let mut put = |name: &str, value: Value| json.insert(name.to_owned(), value);
        put("requests", object! { "count": requests, "tokens": tokens }.into());
        put("context", context_json(last, self.sums.last_tokens()).into());
        put("provenance", self.provenance.as_str().into());
        put("lacks", lacks_json(&self.provenance));
    }
}

fn lacks_json(provenance: &Provenance) -> Value {
    provenance.lacks().iter().map(|lack| lack.as_str()).collect()
}

fn context_json(size: ContextSize, tokens: u64) -> Object {
    object! {
        "frames": size.frames,
        "messages": size.messages,
        "bytes": size.bytes,
        "tokens": tokens,
        "replaced": size.replaced,
    }
}

/// Images, sounds and documents of a context.
pub(crate) fn media_json(media: MediaCount) -> Object {
    let MediaCount { parts, tokens, unknown, .. } = media;
    object! { "parts": parts, "tokens": tokens, "unknown": unknown }
}

/// The sums of one request.
pub(super) struct OfRequest {
    pub(super) number: usize,
    pub(super) ledger: Ledger,
    pub(super) provenance: Provenance,
    pub(super) size: ContextSize,
    /// Its images, sounds and documents, by the rule of its model.
    pub(super) media: MediaCount,
}

impl OfRequest {
    pub(super) fn of(
        source: &mut Source,
        number: usize,
        session: Option<&str>,
        lens: &Lens,
    ) -> Outcome<Self> {
        let (recording, request) = recorded::one(source, number, session, &lens.counter)?;
        let provenance = request.provenance().clone();
        let ledger = Ledger::new(source.format());
        let media = media_counts(&recording).map_err(|error| source.refuse(error))?;
        let media = media.get(number.saturating_sub(1)).copied().unwrap_or_default();
        let mut of = Self { number, ledger, provenance, size: ContextSize::default(), media };
        let context = recording.context(number).map_err(|error| source.refuse(error))?;
        match context {
            Some(context) => of.add_context(&recording, &context, lens),
            None => of.add_parts(&recording, &request, lens),
        }
        let labels = RecordingLabels::new(&recording);
        of.ledger
            .label(|session, frame, facet| Ok(labels.of(session, frame, Some(facet.as_str()))))?;
        Ok(of)
    }

    /// Of one that is worked out: its context.
    fn add_context(&mut self, recording: &Recording, context: &RenderedContext, lens: &Lens) {
        let Some(exchange) = recording.exchange(self.number) else { return };
        self.size = recording.size(self.number).unwrap_or_default();
        for message in context.messages() {
            // What a block or the tail says is in no frame.
            let first = message.frames().map(|(first, _)| first);
            let first = first.or(exchange.last_frame).unwrap_or_default();
            for (frame, chunk) in message.chunks() {
                let tokens = lens.counter.count(chunk.content()) as u64;
                let of = (frame.unwrap_or(first), None);
                self.ledger.add(&exchange.session, of, chunk, tokens);
            }
        }
    }

    /// Of one that was recorded: its parts.
    fn add_parts(&mut self, recording: &Recording, request: &Request, lens: &Lens) {
        let Some(exchange) = recording.exchange(self.number) else { return };
        for part in request.parts() {
            let tokens = request.tokens_of(&part, &*lens.counter);
            let estimate = request.tokens_of(&part, &Chars4);
            let bytes = part.range.len() as u64;
            let (role, kind, frame) = match &part.kind {
                PartKind::Tool { .. } => ("none", "tool", None),
                PartKind::System { frame } => ("system", "system", *frame),
                PartKind::Message { role, frame, .. } => (role.as_str(), "message", *frame),
                PartKind::Parameter { .. } => ("none", "parameter", None),
                _ => ("none", "form", None),
            };
            let is_message =
                matches!(part.kind, PartKind::System { .. } | PartKind::Message { .. });
            self.size.messages += u64::from(is_message);
            self.size.frames += u64::from(frame.is_some());
            self.size.bytes += bytes;
            self.size.message_tokens += tokens;
            let facet = part.facet_id();
            self.ledger.add_part(
                &exchange.session,
                &facet,
                frame,
                (role, kind),
                (bytes, tokens, estimate),
            );
        }
    }

    pub(super) fn to_json(&self, source: &Source) -> Object {
        let mut json = object! {
            "file": source.name(),
            "format": source.format().name(),
            "request": self.number as u64,
            "provenance": self.provenance.as_str(),
            "lacks": lacks_json(&self.provenance),
            "context": context_json(self.size, self.size.tokens()),
            "media": media_json(self.media),
        };
        json.extend(self.ledger.sums_json());
        json
    }
}
