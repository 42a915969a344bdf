//! The figures of contexts: of all requests of a file together, or of one.

use afterimage::{
    bill::{MediaCount, media_counts},
    hud::RenderedContext,
    request::{PartKind, Provenance, Recording, Request},
    session::RequestSums,
    tokens::Chars4,
    window::ContextSize,
};

use super::ledger::Ledger;
use crate::{
    answer::answer, failure::Outcome, input::Source, labels::RecordingLabels, lens::Lens, recorded,
};

/// What the requests of a file come to.
pub(super) struct Contexts {
    pub(super) sums: RequestSums,
    pub(super) provenance: Provenance,
}

answer! {
    /// The requests of a file.
    pub(crate) struct RequestsHeld {
        /// how many there are, as `requests` lists them
        count: u64,
        /// their tokens together, tags and separators included, which `requests` leaves out; where they
        /// are recorded, those of the tools are among them
        tokens: u64,
    }

    /// What a request holds.
    pub(crate) struct ContextHeld {
        /// frames that stand there as they are
        frames: u64,
        /// its messages
        messages: u64,
        /// its bytes; of a recorded request those of its whole body, parameters included
        bytes: u64,
        /// its tokens
        tokens: u64,
        /// the frames before it that show something and are in it no more
        replaced: u64,
    }
}

impl ContextHeld {
    pub(super) fn of(size: ContextSize, tokens: u64) -> Self {
        let ContextSize { frames, messages, bytes, replaced, .. } = size;
        Self { frames, messages, bytes, tokens, replaced }
    }
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
}
