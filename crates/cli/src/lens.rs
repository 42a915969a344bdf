//! What renders and counts.

use std::{fmt, sync::Arc};

use afterimage::{
    hud::{Hud, ProviderFraming, format_by_name},
    json::Object,
    snapshot::{ChunkRef, FrameSnapshot},
    tokens::{self, Certainty, CountedText, Memo, TokenCounter},
};

use crate::{
    answer::{answer, put},
    args::{CounterChoice, Format, Rendering, Tokenizer},
    calibrated::{Calibrated, CountError, Lacking},
    failure::{Failure, Outcome},
    input::Source,
};

/// What renders and counts as the command line asks for.
pub(crate) struct Lens {
    pub(crate) hud: Hud,
    /// The name of the format.
    pub(crate) format: String,
    /// Counts what is asked for. A text that is counted again costs a look-up.
    pub(crate) counter: Arc<dyn TokenCounter>,
    /// What it was fitted to, where its counts are calibrated.
    pub(crate) calibrated: Option<Arc<Calibrated>>,
}

/// When a lens counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Every chunk, when it is rendered.
    Always,
    /// Only what is asked for: where most text is only passed on, its counts would be most of the
    /// work.
    OnDemand,
}

/// The lenses of a command: one for all files, and one for each other way in which archives were
/// rendered and counted.
pub(crate) struct Lenses<'a> {
    rendering: &'a Rendering,
    counting: Counting,
    made: Vec<(String, String, Arc<Lens>)>,
    /// What a calibration came to, which is fitted once.
    chosen: Option<Chosen>,
}

/// The tokenizer that is asked for.
#[derive(Clone)]
struct Chosen {
    tokenizer: String,
    calibrated: Option<Arc<Calibrated>>,
}

impl Chosen {
    fn of(named: &CounterChoice) -> Outcome<Self> {
        Ok(match named {
            CounterChoice::Tokenizer(tokenizer) => {
                Self { tokenizer: tokenizer.name().to_owned(), calibrated: None }
            }
            CounterChoice::Calibrated(of) => {
                let calibrated = Calibrated::find(of)?;
                Self { tokenizer: calibrated.tokenizer.clone(), calibrated: Some(calibrated) }
            }
        })
    }
}

impl<'a> Lenses<'a> {
    pub(crate) fn new(rendering: &'a Rendering, counting: Counting) -> Self {
        Self { rendering, counting, made: Vec::new(), chosen: None }
    }

    /// The lens for a source. What an archive holds keeps its format and tokenizer where no other is
    /// asked for; its frames are rendered anew where another format is.
    pub(crate) fn of(&mut self, source: &mut Source) -> Outcome<Arc<Lens>> {
        let Rendering { format, tokenizer } = self.rendering;
        if let (None, Some(named)) = (&self.chosen, tokenizer) {
            self.chosen = Some(Chosen::of(named)?);
        }
        let format = format.map(Format::name);
        let chosen = self.chosen.as_ref();
        let tokenizer = chosen.map(|chosen| chosen.tokenizer.as_str());
        let own = source
            .own_archive()
            .map(|archived| (archived.entry().format.clone(), archived.entry().tokenizer.clone()));
        let own = own.as_ref().map(|(format, tokenizer)| (format.as_str(), tokenizer.as_str()));
        if let (Some(format), Some((own, _))) = (format, own)
            && format != own
        {
            source.render_anew();
        }
        let format = format.or(own.map(|(format, _)| format));
        let tokenizer = tokenizer.or(own.map(|(_, tokenizer)| tokenizer));
        let format = format.unwrap_or(Format::default().name());
        let tokenizer = tokenizer.unwrap_or(Tokenizer::default().name());
        let known = self.made.iter().find(|(of, by, _)| of == format && by == tokenizer);
        if let Some((.., lens)) = known {
            return Ok(Arc::clone(lens));
        }
        let mut lens = Lens::named(format, tokenizer, self.counting)?;
        lens.calibrated = chosen.and_then(|chosen| chosen.calibrated.clone());
        let lens = Arc::new(lens);
        self.made.push((format.to_owned(), tokenizer.to_owned(), Arc::clone(&lens)));
        Ok(lens)
    }
}

/// A counter for who asks for no counts.
pub(crate) fn uncounted() -> Arc<dyn TokenCounter> {
    Arc::new(Uncounted)
}

impl Lens {
    /// The lens for what is no archive.
    pub(crate) fn new(rendering: &Rendering, counting: Counting) -> Outcome<Self> {
        let Rendering { format, tokenizer } = rendering;
        let named = tokenizer.clone().unwrap_or_else(|| Tokenizer::default().into());
        let Chosen { tokenizer, calibrated } = Chosen::of(&named)?;
        let lens = Self::named(format.unwrap_or_default().name(), &tokenizer, counting)?;
        Ok(Self { calibrated, ..lens })
    }

    /// The rendering of a context whose messages cost what the calibration says.
    pub(crate) fn framing(&self) -> ProviderFraming {
        let per_message = self.calibrated.as_ref().map(|calibrated| calibrated.per_message());
        let default = ProviderFraming::default();
        ProviderFraming { per_message: per_message.unwrap_or(default.per_message), ..default }
    }

    /// The model that calibrated counts are of.
    pub(crate) fn model(&self) -> Option<&str> {
        self.calibrated.as_ref().map(|calibrated| calibrated.model())
    }

    /// What counts for a session of a client, in which this model answers.
    pub(crate) fn counts(&self, session: &str, client: &str, answering: Option<&str>) -> Counts {
        let calibrated = self.calibrated.as_ref();
        let lacks = calibrated.and_then(|calibrated| calibrated.lacks(session, client, answering));
        // A factor of another session's model says nothing of this one.
        let is_known = self.calibrated.is_none() || lacks.is_some();
        let certainty = if is_known { self.of_contexts() } else { Certainty::Estimated };
        Counts { lacks, ..self.counts_as(certainty) }
    }

    /// What counts, whatever the session: contexts, which are exact for nobody.
    pub(crate) fn own_counts(&self) -> Counts {
        self.counts_as(self.of_contexts())
    }

    /// Notes how far off the counts of a context are of which so many tokens are gone.
    pub(crate) fn note_compressed(&self, counts: &mut Counts, gone: u64) {
        if let (Some(error), Some(of), 1..) = (&mut counts.error, &self.calibrated, gone) {
            error.interval_compressed = of.interval_without(gone);
        }
    }

    /// What counts, where its counts are so.
    pub(crate) fn counts_as(&self, certainty: Certainty) -> Counts {
        let calibrated = self.calibrated.as_ref().filter(|_| certainty == Certainty::Calibrated);
        let error = calibrated.and_then(|calibrated| calibrated.error());
        Counts { tokenizer: self.counter.id().to_owned(), certainty, lacks: None, error }
    }

    /// What counts of contexts are: those of transcripts lack tools, so they are exact for nobody.
    fn of_contexts(&self) -> Certainty {
        match self.counter.certainty() {
            Certainty::Exact => Certainty::Estimated,
            other => other,
        }
    }

    /// Says in `json` what counts, whatever the session.
    pub(crate) fn put(&self, json: &mut Object) {
        self.own_counts().put(json);
    }

    fn named(format: &str, tokenizer: &str, counting: Counting) -> Outcome<Self> {
        let missing = || Failure::new(format!("this build has no tokenizer {tokenizer}"));
        let counter = tokens::by_name(tokenizer).ok_or_else(missing)?;
        let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(counter));
        let missing = || Failure::new(format!("this build has no format {format}"));
        let rendering = format_by_name(format).ok_or_else(missing)?;
        let of_chunks: Arc<dyn TokenCounter> = match counting {
            Counting::Always => Arc::clone(&counter),
            Counting::OnDemand => uncounted(),
        };
        let hud = Hud::builder(of_chunks).format(rendering).build();
        Ok(Self { hud, format: format.to_owned(), counter, calibrated: None })
    }

    /// Whether this tokenizer counted the tokens of a snapshot.
    pub(crate) fn has_counted(&self, snapshot: &FrameSnapshot) -> bool {
        snapshot.identity().is_some_and(|made_by| made_by.tokenizer == self.counter.id())
    }

    /// The tokens of a chunk of this snapshot. What another tokenizer counted is counted again.
    pub(crate) fn tokens(&self, snapshot: &FrameSnapshot, chunk: ChunkRef<'_>) -> u64 {
        if self.has_counted(snapshot) {
            chunk.tokens()
        } else {
            self.counter.count(chunk.content()) as u64
        }
    }

    /// The tokens of all chunks of a snapshot, at most as many as 64 bits hold: a frame may declare
    /// any count for what it brings along.
    pub(crate) fn total_tokens(&self, snapshot: &FrameSnapshot) -> u64 {
        let counts = snapshot.chunks().map(|chunk| self.tokens(snapshot, chunk));
        counts.fold(0, u64::saturating_add)
    }
}

/// What counted the tokens of an answer.
pub(crate) struct Counts {
    pub(crate) tokenizer: String,
    pub(crate) certainty: Certainty,
    /// What a request of the session holds that is in no count, where a calibration knows it.
    pub(crate) lacks: Option<Lacking>,
    /// How far off calibrated counts are, where their calibration is at hand.
    pub(crate) error: Option<CountError>,
}

answer! {
    /// What counted the tokens of an answer.
    pub(crate) struct CountsAnswer<'c> {
        /// the id of what counted the tokens
        tokenizer: &'c str,
        /// what these counts are for the models that the file names: `exact`, `calibrated` or
        /// `estimated` ([counts.md](counts.md))
        counts: &'static str,
        /// of calibrated counts whose calibration is at hand, how far off they are
        error?: &'c CountError,
    }

    /// What a request of the session holds that is in no count, where a calibration knows it.
    pub(crate) struct LacksAnswer {
        /// with calibrated counts, where it is known: the tokens that a request of the session
        /// holds and its transcript lacks. `budget` is without them; images and documents are not
        /// among them
        lacks?: u64,
        /// how many other sessions of the client say so, where the calibration does not know this
        /// one
        other_sessions?: u64,
        /// the half-width of the interval that holds `lacks` of one more session nine times in ten
        lacks_interval?: u64,
    }
}

impl Counts {
    /// What counted.
    pub(crate) fn answer(&self) -> CountsAnswer<'_> {
        let (tokenizer, counts) = (self.tokenizer.as_str(), self.certainty.as_str());
        CountsAnswer { tokenizer, counts, error: self.error.as_ref() }
    }

    /// What is in no count.
    pub(crate) fn lacks_answer(&self) -> LacksAnswer {
        let lacks = self.lacks.map(|lacks| lacks.tokens);
        let (other_sessions, lacks_interval) = self.lacks.and_then(|lacks| lacks.others).unzip();
        LacksAnswer { lacks, other_sessions, lacks_interval }
    }

    /// Adds the members of [`CountsAnswer`] and [`LacksAnswer`].
    pub(crate) fn put(&self, json: &mut Object) {
        put(json, &self.answer());
        put(json, &self.lacks_answer());
    }

    /// Who counted, and what that is.
    pub(crate) fn tokenizer(&self) -> String {
        match (&self.tokenizer, self.certainty) {
            // Its name says that it is.
            (tokenizer, Certainty::Calibrated) => tokenizer.clone(),
            (tokenizer, certainty) => format!("{tokenizer} ({certainty})"),
        }
    }

    /// The budget that is left for what a transcript holds.
    pub(crate) fn room(&self, budget: u64, session: &str) -> Result<u64, Failure> {
        self.lacks.map_or(Ok(budget), |lacks| lacks.room(budget, session))
    }
}

/// For people: who counted, what that is, and how far off it is.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tokenizer())?;
        self.error.as_ref().map_or(Ok(()), |error| write!(f, ", {error}"))
    }
}

/// Counts nothing. Its snapshots say so by its id, and are not for output.
struct Uncounted;

impl TokenCounter for Uncounted {
    fn id(&self) -> &'static str {
        "uncounted"
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn count(&self, _text: &str) -> usize {
        0
    }

    fn count_joined(&self, _parts: &[CountedText<'_>]) -> usize {
        0
    }
}
