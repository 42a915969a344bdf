//! What renders and counts.

use std::{rc::Rc, sync::Arc};

use afterimage::{
    hud::{Hud, format_by_name},
    snapshot::{ChunkRef, FrameSnapshot},
    tokens::{self, CountedText, Memo, TokenCounter},
};

use crate::{
    args::{Format, Rendering, Tokenizer},
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
    made: Vec<(String, String, Rc<Lens>)>,
}

impl<'a> Lenses<'a> {
    pub(crate) fn new(rendering: &'a Rendering, counting: Counting) -> Self {
        Self { rendering, counting, made: Vec::new() }
    }

    /// The lens for a source. What an archive holds keeps its format and tokenizer where no other is
    /// asked for; its frames are rendered anew where another format is.
    pub(crate) fn of(&mut self, source: &mut Source) -> Outcome<Rc<Lens>> {
        let Rendering { format, tokenizer } = self.rendering;
        let (format, tokenizer) = (format.map(Format::name), tokenizer.map(Tokenizer::name));
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
            return Ok(Rc::clone(lens));
        }
        let lens = Rc::new(Lens::named(format, tokenizer, self.counting)?);
        self.made.push((format.to_owned(), tokenizer.to_owned(), Rc::clone(&lens)));
        Ok(lens)
    }
}

impl Lens {
    /// The lens for what is no archive.
    pub(crate) fn new(rendering: &Rendering, counting: Counting) -> Outcome<Self> {
        let Rendering { format, tokenizer } = rendering;
        let (format, tokenizer) = (format.unwrap_or_default(), tokenizer.unwrap_or_default());
        Self::named(format.name(), tokenizer.name(), counting)
    }

    fn named(format: &str, tokenizer: &str, counting: Counting) -> Outcome<Self> {
        let missing = || Failure::new(format!("this build has no tokenizer {tokenizer}"));
        let counter = tokens::by_name(tokenizer).ok_or_else(missing)?;
        let counter: Arc<dyn TokenCounter> = Arc::new(Memo::new(counter));
        let missing = || Failure::new(format!("this build has no format {format}"));
        let rendering = format_by_name(format).ok_or_else(missing)?;
        let of_chunks: Arc<dyn TokenCounter> = match counting {
            Counting::Always => Arc::clone(&counter),
            Counting::OnDemand => Arc::new(Uncounted),
        };
        let hud = Hud::builder(of_chunks).format(rendering).build();
        Ok(Self { hud, format: format.to_owned(), counter })
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
