//! Requests as a recording holds them: reading a recording, finding one request, and saying what is known of it.

use std::{path::PathBuf, sync::Arc};

use afterimage::{
    request::{Lack, Provenance, Recording, Request},
    tokens::TokenCounter,
    transcript::{SourceContent, TranscriptFormat},
    veil::{self, History},
};
use indexmap::IndexSet;

use crate::{
    args::Input,
    failure::{Failure, Outcome},
    input::{self, Source},
    moment::moment,
    text::counted,
};

/// Reads a source to its end, with its requests.
pub(crate) fn read(source: &mut Source, counter: &Arc<dyn TokenCounter>) -> Outcome<Recording> {
    source.keep_exchanges();
    let mut recording = Recording::new(source.format(), Arc::clone(counter));
    while let Some(record) = source.next() {
        let record = record?;
        let now = moment(&record.frame);
        recording.push(record, now).map_err(|error| source.refuse(error))?;
    }
    recording.finish(source.take_exchanges()?);
    Ok(recording)
}

/// The request with this number of a source.
pub(crate) fn one(
    source: &mut Source,
    number: usize,
    session: Option<&str>,
    counter: &Arc<dyn TokenCounter>,
) -> Outcome<(Recording, Request)> {
    let recording = read(source, counter)?;
    let request = numbered(source, &recording, number, session)?;
    Ok((recording, request))
}

/// The request with this number of a recording.
pub(crate) fn numbered(
    source: &Source,
    recording: &Recording,
    number: usize,
    session: Option<&str>,
) -> Outcome<Request> {
    check(source, recording, number, session)?;
    known(source, recording, number)?;
    recording.request(number).map_err(|error| source.refuse(error))
}

/// An error where the body of a request is not known.
pub(crate) fn known(source: &Source, recording: &Recording, number: usize) -> Outcome {
    match recording.exchange(number).and_then(|exchange| exchange.unread.as_deref()) {
        Some(reason) => {
            let text = format!("the body of request {number} is not known: {reason}");
            let failure = source.fail(text);
            Err(if source.is_recording() {
                let hint =
                    format!("`afterimage render --request {number} --raw FILE` prints the body");
                failure.hint(hint).into()
            } else {
                failure.into()
            })
        }
        None => Ok(()),
    }
}

/// The recording of a source that has a request with this number.
pub(crate) fn with(
    source: &mut Source,
    number: usize,
    session: Option<&str>,
    counter: &Arc<dyn TokenCounter>,
) -> Outcome<Recording> {
    let recording = read(source, counter)?;
    check(source, &recording, number, session)?;
    Ok(recording)
}

/// An error where a recording has no request with this number, or has it in another session.
fn check(source: &Source, recording: &Recording, number: usize, session: Option<&str>) -> Outcome {
    let count = recording.exchanges().len() as u64;
    if number == 0 || number as u64 > count {
        let there_is = if count == 0 {
            "there is no request in it".to_owned()
        } else {
            format!(
                "there {} {} in it",
                if count == 1 { "is" } else { "are" },
                counted(count, "request")
            )
        };
        let failure = source.fail(format!("{there_is}, and none with the number {number}"));
        return Err(failure.hint("`afterimage requests FILE` lists them").into());
    }
    let of = recording.exchange(number).map(|exchange| &*exchange.session);
    if let (Some(wanted), Some(of)) = (session, of)
        && wanted != of
    {
        let failure = source.fail(format!("request {number} is of the session {of:?}"));
        return Err(failure
            .hint("`afterimage requests --session NAME FILE` lists those of one")
            .into());
    }
    Ok(())
}

/// Says that a request was worked out, joined, or logged by its client, and what is missing.
pub(crate) fn provenance_note(format: TranscriptFormat, provenance: &Provenance) -> Option<String> {
    match provenance {
        provenance if provenance.is_logged() => {
            let without = format.logged_without()?;
            Some(format!("as the client logged it: what was sent, without {without}"))
        }
        Provenance::Reconstructed { lacks } => Some(advised(format, lacks, reconstructed(lacks))),
        Provenance::Resolved { wrong: Some(wrong), .. } => Some(format!("not joined: {wrong}")),
        Provenance::Resolved { messages, missing, .. } => {
            let messages = counted(*messages as u64, "message");
            let missing = missing.as_deref().map(|id| {
                format!(
                    ", and what leads to {id:?} is not in the source: it lies at the provider, and no \
                     figure counts it"
                )
            });
            let missing = missing.unwrap_or_default();
            Some(format!(
                "resolved: {messages} of earlier requests and answers stand before its own{missing}"
            ))
        }
        _ => None,
    }
}

/// Says that a context was worked out from a transcript, and what that lacks.
fn reconstructed(lacks: &[Lack]) -> String {
    format!("reconstructed from a transcript, without {}", named(lacks))
}

/// What to do for the next session, where the one of a client lacks parts of its requests.
pub(crate) fn advice(format: TranscriptFormat, lacks: &[Lack]) -> Option<&'static str> {
    // Parameters alone are lacking where a client logs other requests than these.
    let is_older = lacks.iter().any(|lack| *lack != Lack::Parameters);
    match (format.holds(), format.logged_without()) {
        (SourceContent::Transcript, Some(_)) if is_older => {
            Some("record, or use a version that logs its requests")
        }
        (SourceContent::Transcript, _) if !lacks.is_empty() => {
            Some("`afterimage record` keeps them")
        }
        _ => None,
    }
}

/// A sentence with what to do.
fn advised(format: TranscriptFormat, lacks: &[Lack], says: String) -> String {
    match advice(format, lacks) {
        Some(advice) => format!("{says}: {advice}"),
        None => says,
    }
}

/// Says that a file without a hit may lack what is searched for, and what to do.
pub(crate) fn no_hit_note(format: TranscriptFormat, lacks: &[Lack]) -> Option<String> {
    let lacks: Vec<Lack> = lacks.iter().copied().filter(|lack| *lack != Lack::Parameters).collect();
    let advice = advice(format, &lacks)?;
    Some(format!("the transcript does not hold {}: {advice}", named(&lacks)))
}

/// Says of a context that its source holds no such text: what it was worked out from, and what that
/// lacks.
pub(crate) fn context_note(format: TranscriptFormat, lacks: &[Lack]) -> String {
    if format.holds_requests() {
        return "the context holds the messages of recorded requests alone: `render --request N FILE` \
                has them as they were sent, with their tools and parameters"
            .to_owned();
    }
    // Tools are in no context, whatever the source holds.
    let without = lacks.iter().copied().filter(|lack| *lack != Lack::Tools);
    let all: Vec<Lack> = [Lack::Tools].into_iter().chain(without).collect();
    let says = format!("the context is {}", reconstructed(&all));
    // A client that logs its requests writes its system prompt down.
    if lacks.contains(&Lack::SystemPrompt) { advised(format, lacks, says) } else { says }
}

/// As [`context_note`], of the contexts of these histories.
pub(crate) fn note_of<'h>(
    format: TranscriptFormat,
    mut histories: impl Iterator<Item = &'h History>,
) -> String {
    let has_system = histories.all(|history| {
        let frames = history.frames();
        (0..frames.len()).any(|index| frames.source(index) == Some(veil::Source::System))
    });
    context_note(format, &Lack::of_transcript(has_system, false, false))
}

fn named(lacks: &[Lack]) -> String {
    let names: Vec<String> = lacks.iter().map(ToString::to_string).collect();
    match names.split_last() {
        None => "all of it".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// A failure where no request of a recording is of the session that is asked for.
pub(crate) fn expect_session(source: &Source, recording: &Recording, session: &str) -> Outcome {
    let all = recording.exchanges().iter().map(|exchange| &*exchange.session);
    if all.clone().any(|name| name == session) {
        return Ok(());
    }
    let names: IndexSet<&str> = all.collect();
    let names: Vec<&str> = names.into_iter().take(8).collect();
    let failure = source.fail(format!("there is no session {session:?} with a request"));
    Err(if names.is_empty() {
        failure.into()
    } else {
        failure.hint(format!("the sessions are {}", names.join(", "))).into()
    })
}

/// A failure where a request is asked for and there are several files.
pub(crate) fn of_one_file(input: &Input) -> Outcome {
    let is_folder = |path: &PathBuf| !input.last && input::is_folder_of_files(path);
    if input.files.len() > 1 || input.files.iter().any(is_folder) {
        return Err(Failure::new(
            "a request is asked for by its number in one file, found several files",
        )
        .into());
    }
    Ok(())
}
