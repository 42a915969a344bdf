//! Why the program stops early, and how it says so.

use std::{fmt, io, path::Path};

use afterimage::error::Place;

/// The outcome of a command and of everything inside it.
pub(crate) type Outcome<T = ()> = Result<T, Stop>;

/// Why a command stops before its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Nobody reads standard output any more. No failure: the reader has what it wanted.
    ClosedPipe,
    /// The input was refused, or the system failed.
    Failure(Box<Failure>),
    /// Standard output takes no more, so no other file needs to be read.
    Output(Box<Failure>),
    /// A failure that was reported already.
    Reported,
    /// All was read, and the answer is no.
    Negative,
    /// What a context must hold is more than its budget, which was reported already.
    Unfit,
    /// The command that was run ended with this exit code.
    #[cfg(feature = "record")]
    Command(u8),
}

/// What went wrong: a sentence, where, and what may help.
#[derive(Debug)]
pub(crate) struct Failure {
    sentence: String,
    place: Vec<(&'static str, String)>,
    hint: Option<String>,
    /// What may help going by the kind of the error alone.
    guess: Option<&'static str>,
}

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), place: Vec::new(), hint: None, guess: None }
    }

    /// What a file or directory that does not open gets.
    pub(crate) fn cannot_open(error: &io::Error) -> Self {
        let reason = error.to_string();
        let reason = reason.split(" (os error").next().unwrap_or_default().to_lowercase();
        Self::new(format!("cannot open the file: {reason}"))
    }

    /// Names a part of the place.
    pub(crate) fn at(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.place.push((name, value.to_string()));
        self
    }

    pub(crate) fn file(self, path: &Path) -> Self {
        self.at("file", path.display())
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The sentence.
    pub(crate) fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Where it is, and what may help: names with values.
    pub(crate) fn details(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let place = self.place.iter().map(|(name, value)| (*name, value.as_str()));
        let hint = self.hint.as_deref().or(self.guess).map(|hint| ("hint", hint));
        place.chain(hint)
    }
}

impl Stop {
    /// The same stop of a command that reads something else, with its own advice.
    pub(crate) fn advised(self, advice: &'static str) -> Self {
        match self {
            Self::Failure(failure) if failure.guess == Some(DAMAGED) => {
                Self::Failure(Box::new(Failure { guess: Some(advice), ..*failure }))
            }
            other => other.without_guess(),
        }
    }

    /// The same stop of a command that reads something else than transcripts and archives.
    pub(crate) fn without_guess(self) -> Self {
        match self {
            Self::Failure(failure) => Self::Failure(Box::new(Failure { guess: None, ..*failure })),
            other => other,
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(Box::new(failure))
    }
}

/// The errors of the other crates convert as they do on their way up to that of afterimage.
macro_rules! stop_from {
    ($($error:path),*) => {$(
        impl From<$error> for Stop {
            fn from(error: $error) -> Self {
                afterimage::Error::from(error).into()
            }
        }
    )*};
}

stop_from!(
    afterimage::checkpoint::Error,
    afterimage::journal::Error,
    afterimage::json::Error,
    afterimage::log::Error,
    afterimage::observe::Error,
    afterimage::record::Error,
    afterimage::timeline::Error
);

impl From<afterimage::Error> for Stop {
    fn from(error: afterimage::Error) -> Self {
        let Place { file, line, column, record, offset, frame, .. } = error.place();
        let Place { turn, delta, op, chunk, facet, path, session, event, .. } = error.place();
        let show = |value: &dyn fmt::Display| Some(value.to_string());
        let place = [
            ("file", file.as_ref().map(|file| file.display().to_string())),
            ("line", line.as_ref().and_then(|line| show(line))),
            ("column", column.as_ref().and_then(|column| show(column))),
            ("record", record.as_ref().and_then(|record| show(record))),
            ("offset", offset.as_ref().and_then(|offset| show(offset))),
            ("frame", frame.as_ref().and_then(|frame| show(frame))),
            ("turn", turn.as_ref().and_then(|turn| show(turn))),
            ("delta", delta.clone()),
            ("op", op.as_ref().and_then(|op| show(op))),
            ("chunk", chunk.as_ref().and_then(|chunk| show(chunk))),
            ("facet", facet.clone()),
            ("at", path.clone()),
            ("session", session.clone()),
            ("event", event.as_ref().and_then(|event| show(event))),
        ];
        let mut failure = Failure::new(error.message());
        failure.place =
            place.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        // Of a session in a journal nothing else can be made anew.
        failure.guess = guess(error.kind()).filter(|_| session.is_none());
        failure.into()
    }
}

/// The advice for transcripts and archives, which most commands read.
fn guess(kind: afterimage::ErrorKind) -> Option<&'static str> {
    match kind {
        afterimage::ErrorKind::UnknownFormat => {
            Some("`afterimage formats` lists what can be read, `--input-format NAME` overrules")
        }
        afterimage::ErrorKind::Json | afterimage::ErrorKind::Utf8 => {
            Some("a transcript is a JSON document, or JSON by line")
        }
        afterimage::ErrorKind::Damaged => Some(DAMAGED),
        afterimage::ErrorKind::Version => {
            Some("this version of afterimage does not know that version of the format")
        }
        _ => None,
    }
}

const DAMAGED: &str = "what is not damaged is still read; `afterimage archive` makes it anew";
