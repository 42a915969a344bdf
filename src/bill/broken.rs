use std::{collections::HashMap, sync::Arc};

use crate::{
    Result,
    export::PrefixRules,
    id::Millis,
    json::PathElement,
    request::{Exchange, Recording, RequestDiff, ReshapedContent, reshaped},
    snapshot::Substitution,
    transcript::{AppliedEdit, Usage},
    veil::Source,
};

/// How long a cache keeps what was written for five minutes, and for an hour, in milliseconds.
const FIVE_MINUTES: u64 = 5 * 60 * 1000;
const HOUR: u64 = 60 * 60 * 1000;

/// How long a cache keeps what a request wrote, in milliseconds: what the usage says, else what the
/// provider publishes for the model. OpenAI keeps what GPT-5.6 and later ones were sent for 30 minutes,
/// and what GPT-5.5 was sent for up to 24 hours; of older ones it keeps most for 5 to 10 minutes.
fn lifetime(usage: &Usage, model: Option<&str>) -> u64 {
    if usage.cache_write_1h.is_some_and(|tokens| tokens > 0) {
        return HOUR;
    }
    match model.and_then(gpt_version) {
        Some(version) if version >= (5, 6) => HOUR / 2,
        Some((5, 5)) => 24 * HOUR,
        _ => FIVE_MINUTES,
    }
}

/// The version of a GPT, as in `openai/gpt-5.6-luna`; nothing behind the point is 0.
fn gpt_version(model: &str) -> Option<(u64, u64)> {
    let name = model.rsplit('/').next()?.strip_prefix("gpt-")?;
    let version = name.split('-').next()?;
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// A provider that reports no writes caches by itself, from so many tokens on: Google's Gemini Pro
/// from 4,096, others from 1,024.
fn least(model: Option<&str>) -> u64 {
    let is_pro = |model: &str| model.contains("gemini") && !model.contains("flash");
    if model.is_some_and(is_pro) { 4096 } else { 1024 }
}

/// It caches whole blocks. OpenAI documents 128 tokens, and recorded reads of GPT-5.5 lie 512 apart, so
/// less than such a block is never a loss.
const BLOCK: u64 = 512;

/// A request whose cache served less than the request before it had left there.
#[derive(Clone, Debug)]
pub struct BrokenCache {
    /// The number of the request.
    pub request: usize,
    /// The number of the one before it that says what it left in the cache.
    pub previous: usize,
    /// The tokens that were read anew: what the previous one left in the cache, less what was
    /// served. In the provider's tokens, as reported.
    pub lost: u64,
    /// The time from the previous request to this, in milliseconds, where both have one.
    pub after_ms: Option<u64>,
    /// Why.
    pub cause: BreakCause,
}

/// Why a cache served less.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum BreakCause {
    /// The requests differ before their end, or in what takes the cache. Its first difference is
    /// that of this one.
    Changed(Box<RequestDiff>),
    /// The provider cleared something else of this request than of the one before.
    Edited(Vec<AppliedEdit>),
    /// They say the same in another form, which this provider's cache counts.
    Reshaped(ReshapedContent),
    /// They do not, as far as the source tells, and the cache keeps nothing for so long.
    Expired,
    /// Neither, and the cache served exactly what the request with this number had left, which is
    /// older than the last: another server answered, or the last write was not there yet.
    Older(usize),
    /// Neither. What a transcript lacks may have changed: tools, parameters, the system prompt.
    Unknown,
}

impl BreakCause {
    /// The name on the wire: `changed`, `edited`, `reshaped`, `expired`, `older`, `unknown`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Changed(_) => "changed",
            Self::Edited(_) => "edited",
            Self::Reshaped(_) => "reshaped",
            Self::Expired => "expired",
            Self::Older(_) => "older",
            Self::Unknown => "unknown",
        }
    }

    /// The cause in a sentence, without the stop at its end; `None` where the requests differ, which
    /// the guard names. O(length of the words).
    pub fn words(&self) -> Option<String> {
        Some(match self {
            Self::Changed(_) => return None,
            Self::Edited(edits) if edits.is_empty() => {
                "the provider no longer clears what it had cleared".to_owned()
            }
            Self::Edited(edits) => {
                let words: Vec<String> = edits.iter().map(AppliedEdit::words).collect();
                format!("the provider cleared {}", words.join(" and "))
            }
            Self::Reshaped(content) => content.words(),
            Self::Expired => EXPIRED.to_owned(),
            Self::Older(number) => format!(
                "it read exactly what request {number} had left: another server answered, or the \
                 last write was not there yet"
            ),
            Self::Unknown => "unknown: it begins as the request before does".to_owned(),
        })
    }
}

/// Why nothing is served after a long time, for people.
pub(crate) const EXPIRED: &str = "the cache keeps nothing for so long";

/// What a request leaves in the cache at the least: what it read there and wrote. Who reports no
/// writes caches the whole request, but for a block that is not full.
fn left(usage: &Usage, model: Option<&str>) -> u64 {
    match (usage.cache_write, usage.input.unwrap_or(0)) {
        (Some(written), _) => written.saturating_add(usage.cache_read.unwrap_or(0)),
        (None, input) if input < least(model) => 0,
        (None, input) => input - (BLOCK - 1),
    }
}

/// The tokens that a request read anew, by its own report: what the one before it left in the cache,
/// or the whole request where that is shorter, less what was served. `None` where one of them reports
/// nothing of its cache. Each has its usage and its model. O(1).
pub fn lost_tokens((before, model): (&Usage, Option<&str>), usage: &Usage) -> Option<u64> {
    let (last, first) = (before.runs().last()?, usage.runs().first()?);
    // Who was broken off before the provider said anything reports zeros.
    let input = first.input.filter(|input| *input > 0)?;
    Some(left(last, model).min(input).saturating_sub(first.cache_read?))
}

/// A request that reported what it left in the cache.
struct Before {
    number: usize,
    usage: Usage,
    model: Option<Arc<str>>,
    lives: u64,
    time: Option<Millis>,
}

/// The requests of a recording whose caches broke: those that report to have read less than the
/// request before them in their session left there. A request that follows a compaction and keeps no
/// message shares with the one before only what stands before the messages: it is broken where
/// nothing was read. `time` reads the time of an exchange.
///
/// A copy of another session's answer is among them: what it reports is true of its request. What it
/// lost was paid for in that session.
///
/// Cost: O(n) over the exchanges, and a comparison of two requests for each that broke.
///
/// # Errors
/// Those of [`Recording::compare`].
pub fn broken_caches(
    recording: &Recording,
    time: impl Fn(&str) -> Option<Millis>,
) -> Result<Vec<BrokenCache>> {
    let mut before: HashMap<Arc<str>, Before> = HashMap::new();
    // Which request of a session left an entry of this length last.
    let mut entries: HashMap<(Arc<str>, u64), usize> = HashMap::new();
    let mut broken = Vec::new();
    for exchange in recording.exchanges() {
        // Who was broken off before the provider said anything reports zeros.
        let usage = exchange.figures().filter(|usage| usage.input.is_some_and(|of| of > 0));
        // Where a provider compacted the request first, the first run reads what was left, and the
        // last one leaves something else.
        let runs = usage.map(Usage::runs).unwrap_or_default();
        let (Some(first), Some(usage)) = (runs.first(), runs.last()) else { continue };
        let Some(read) = first.cache_read else { continue };
        let now = exchange.time.as_deref().and_then(&time);
        let model = exchange.model.as_deref();
        let next = Before {
            number: exchange.number,
            usage: usage.clone(),
            model: exchange.model.clone(),
            lives: lifetime(usage, model),
            time: now,
        };
        let last = before.insert(Arc::clone(&exchange.session), next);
        let older = entries.get(&(Arc::clone(&exchange.session), read)).copied();
        // Who reports no writes does not say where its entries end.
        if usage.cache_write.is_some() {
            let entry = (Arc::clone(&exchange.session), left(usage, model));
            entries.insert(entry, exchange.number);
        }
        let Some(last) = last else { continue };
        // What was read lives on as long as it did.
        if let Some(next) = before.get_mut(&exchange.session) {
            next.lives = if read > 0 { next.lives.max(last.lives) } else { next.lives };
        }
        let lost = lost_tokens((&last.usage, last.model.as_deref()), first).unwrap_or(0);
        if lost == 0 {
            continue;
        }
        let after_ms = now.zip(last.time).and_then(|(now, was)| now.get().checked_sub(was.get()));
        let after_ms = after_ms.and_then(|after| u64::try_from(after).ok());
        let is_replaced = read > 0 && !keeps_messages(recording, last.number, exchange.number);
        if is_replaced {
            // What stands before the messages was served, and nothing else of the cache is held.
            continue;
        }
        let numbers = (last.number, exchange.number);
        let cause = match differs(recording, numbers)? {
            Some(cause) => cause,
            None if after_ms.is_some_and(|after| after > last.lives) => BreakCause::Expired,
            None => older
                .filter(|of| *of != last.number && read > 0)
                .map_or(BreakCause::Unknown, BreakCause::Older),
        };
        let (previous, request) = numbers;
        broken.push(BrokenCache { request, previous, lost, after_ms, cause });
    }
    Ok(broken)
}

/// What differs between two requests of a session, as the cache of their provider took them.
fn differs(recording: &Recording, (from, to): (usize, usize)) -> Result<Option<BreakCause>> {
    let exchange = |number: usize| recording.exchange(number);
    let diff = changed(recording, from, to)?;
    let (was, is) = (exchange(from), exchange(to));
    let edits = is.map(|is| is.edits.as_slice()).unwrap_or_default();
    let count = |edit: &AppliedEdit| (edit.kind.clone(), edit.cleared);
    if was.is_some_and(|was| was.edits.iter().map(count).ne(edits.iter().map(count))) {
        // What differs before the first block that is cleared took the cache before the edit could.
        let both = [recording.cleared(from)?, recording.cleared(to)?];
        let first = both.iter().flatten().map(|block| block.message).min().unwrap_or(0);
        let is_after = |diff: &RequestDiff| {
            let path = diff.prefix.divergence.as_ref().map(|of| of.path.elements());
            diff.breaks.is_empty()
                && matches!(path, Some([_, PathElement::Index(at), ..]) if *at > first)
        };
        if diff.as_ref().is_none_or(is_after) {
            return Ok(Some(BreakCause::Edited(edits.to_vec())));
        }
    }
    if let Some(diff) = diff {
        return Ok(Some(BreakCause::Changed(Box::new(diff))));
    }
    let is_recorded = |of: Option<&Exchange>| of.is_some_and(Exchange::has_whole_request);
    if !(is_recorded(was) && is_recorded(is)) {
        return Ok(None);
    }
    let (was, is) = (recording.request(from)?, recording.request(to)?);
    let mut reshaped = reshaped(was.value()?, is.value()?).into_iter();
    Ok(reshaped.find(|content| content.change.is_shape()).map(BreakCause::Reshaped))
}

/// Whether a request still holds a message of an earlier one of its session: a compaction may
/// replace all of them. Of recorded traffic and of one context only the answer is yes.
fn keeps_messages(recording: &Recording, from: usize, to: usize) -> bool {
    let held = recording.in_force(from).zip(recording.in_force(to));
    let Some(((last, before), (_, blocks))) = held else { return true };
    let session = recording.exchanges().get(to - 1).map(|exchange| &exchange.session);
    let history = session.and_then(|session| recording.history(session));
    let Some(history) = history.filter(|_| !std::ptr::eq(before, blocks)) else { return true };
    let is_replaced = |frame| blocks.iter().any(|of| of.from <= frame && frame <= of.to);
    let is_old =
        |block: &Substitution| before.iter().any(|of| (of.from, of.to) == (block.from, block.to));
    let frames = history.frames();
    let mut shown = (0..frames.len()).filter(|index| {
        let is_shown = frames.snapshot(*index).is_some_and(|snapshot| !snapshot.is_empty());
        is_shown && frames.source(*index) != Some(Source::System)
    });
    let mut kept = shown.by_ref().filter_map(|index| frames.sequence(index));
    let is_kept = kept.by_ref().take_while(|frame| *frame <= last).any(|frame| !is_replaced(frame));
    is_kept || blocks.iter().any(is_old)
}

/// The first difference from one request to a later one of its session, which does not lie at the
/// end.
fn changed(recording: &Recording, from: usize, to: usize) -> Result<Option<RequestDiff>> {
    let mut number = to;
    let mut steps = Vec::new();
    while number > from {
        steps.push(number);
        let Some(previous) = recording.previous(number) else { break };
        number = previous;
    }
    for number in steps.into_iter().rev() {
        let diff = recording.compare(number, PrefixRules::EXACT)?;
        let differs =
            |diff: &RequestDiff| diff.prefix.divergence.is_some() || !diff.breaks.is_empty();
        if let Some(diff) = diff.filter(differs) {
            return Ok(Some(diff));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{tokens::Chars4, transcript::Transcript};

    /// The broken caches of a session of pi with these answers: second, input, read, written.
    fn check(answers: &[(u64, u64, u64, u64)], change: Option<usize>, expected: &str) {
        let mut lines =
            vec![r#"{"type":"session","id":"s","timestamp":"t","cwd":"/x"}"#.to_owned()];
        for (at, (second, input, read, written)) in answers.iter().enumerate() {
            if change == Some(at) {
                lines.push(r#"{"type":"compaction","id":"c","summary":"so far","firstKeptEntryId":"nowhere"}"#.to_owned());
            }
            lines.push(format!(r#"{{"type":"message","id":"u{at}","timestamp":"{second}","message":{{"role":"user","content":"go {at}"}}}}"#));
            lines.push(format!(r#"{{"type":"message","id":"a{at}","timestamp":"{second}","message":{{"role":"assistant","content":"gone","usage":{{"input":{input},"output":{at},"cacheRead":{read},"cacheWrite":{written}}}}}}}"#));
        }
        let text = lines.join("\n");
        let transcript = Transcript::new(text.as_bytes()).unwrap();
        let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap();
        let time = |text: &str| text.parse::<i64>().ok().map(|second| Millis::new(second * 1000));
        let broken = broken_caches(&recording, time).unwrap();
        let said: Vec<String> = broken
            .iter()
            .map(|of| {
                format!(
                    "{} after {} lost {} {}",
                    of.request,
                    of.previous,
                    of.lost,
                    of.cause.as_str()
                )
            })
            .collect();
        assert_eq!(said.join(", "), expected);
    }

    #[test]
    fn a_cache_is_broken_where_less_is_read_than_was_left_there() {
        // Nothing was written at first; what is never written is never lost.
        check(&[(0, 2775, 0, 0), (4, 1, 0, 3000), (9, 10, 3000, 50), (12, 1, 3050, 7)], None, "");
        check(&[(0, 1, 0, 3000), (9, 10, 1000, 2050)], None, "2 after 1 lost 2000 unknown");
        check(&[(0, 1, 0, 3000), (301, 10, 0, 3050)], None, "2 after 1 lost 3000 expired");
        check(&[(0, 1, 0, 3000), (300, 10, 0, 3050)], None, "2 after 1 lost 3000 unknown");
        // A compaction changes the request, however late it comes, and a shorter one loses less.
        check(&[(0, 1, 0, 3000), (301, 10, 0, 70)], Some(1), "2 after 1 lost 80 changed");
        // Where the compaction keeps no message, and what stands before them was read, nothing is lost.
        check(&[(0, 1, 0, 3000), (301, 10, 50, 70)], Some(1), "");
    }

    #[test]
    fn a_cache_lives_as_long_as_the_provider_publishes_for_the_model() {
        let minutes = |model: &str| lifetime(&Usage::default(), Some(model)) / 60_000;
        for (model, expected) in [
            ("gpt-5.6-luna", 30),
            ("openai/gpt-6", 30),
            ("gpt-5.10", 30),
            ("gpt-5.5-pro", 24 * 60),
            ("gpt-5.4", 5),
            ("gpt-5-mini-2025-08-07", 5),
            ("gpt-4o", 5),
            ("o4-mini", 5),
            ("claude-opus-4-5", 5),
        ] {
            assert_eq!(minutes(model), expected, "{model}");
        }
        let usage = Usage { cache_write_1h: Some(1), ..Usage::default() };
        assert_eq!(lifetime(&usage, None), HOUR);
    }

    #[test]
    fn who_caches_by_itself_leaves_whole_blocks() {
        let usage = |input: u64, read: u64| {
            format!(
                r#"{{"input_tokens":{input},"output_tokens":1,"input_tokens_details":{{"cached_tokens":{read}}}}}"#
            )
        };
        let of = |usages: &[(u64, u64)], expected: &str| {
            let usages: Vec<_> = usages.iter().map(|(input, read)| usage(*input, *read)).collect();
            check_traffic(&usages.iter().map(String::as_str).collect::<Vec<_>>(), expected);
        };
        of(&[(18_703, 0), (18_911, 18_304), (20_292, 18_816)], "");
        of(&[(1_023, 0), (2_000, 0)], "");
        of(&[(18_703, 0), (18_911, 17_792)], "2 lost 400");
        of(&[(20_292, 0), (20_419, 0)], "2 lost 19781");
    }

    /// The broken caches of traffic whose answers report this.
    fn check_traffic(usages: &[&str], expected: &str) {
        let mut messages = Vec::new();
        let interactions: Vec<String> = usages
            .iter()
            .map(|usage| {
                messages.push(r#"{"role":"user","content":"go"}"#.to_owned());
                let request = format!(r#"{{"model":"m","messages":[{}]}}"#, messages.join(","));
                messages.push(r#"{"role":"assistant","content":[{"type":"text","text":"gone"}]}"#.to_owned());
                format!(
                    r#"{{"uri":"https://a/v1/messages","request":{request},"status":200,"response":{{"type":"message","role":"assistant","content":[{{"type":"text","text":"gone"}}],"usage":{usage}}}}}"#
                )
            })
            .collect();
        let text = format!(r#"{{"interactions":[{}]}}"#, interactions.join(","));
        let transcript = Transcript::new(text.as_bytes()).unwrap();
        let recording = Recording::read(transcript, Arc::new(Chars4), |_| Millis::new(0)).unwrap();
        assert_eq!(recording.exchanges().len(), usages.len());
        let broken = broken_caches(&recording, |_| None).unwrap();
        let said: Vec<String> =
            broken.iter().map(|of| format!("{} lost {}", of.request, of.lost)).collect();
        assert_eq!(said.join(", "), expected);
    }

    #[test]
    fn where_the_provider_compacted_a_request_the_first_run_reads_and_the_last_one_leaves() {
        let first = r#"{"input_tokens":1,"output_tokens":1,"cache_read_input_tokens":0,"cache_creation_input_tokens":3000}"#;
        let compacted = r#"{"input_tokens":200,"output_tokens":1,"cache_read_input_tokens":0,"cache_creation_input_tokens":50,"iterations":[
            {"type":"compaction","input_tokens":2009,"output_tokens":1,"cache_read_input_tokens":3000,"cache_creation_input_tokens":90},
            {"type":"message","input_tokens":200,"output_tokens":1,"cache_read_input_tokens":0,"cache_creation_input_tokens":50}]}"#;
        let last = r#"{"input_tokens":7,"output_tokens":1,"cache_read_input_tokens":50,"cache_creation_input_tokens":0}"#;
        check_traffic(&[first, compacted, last], "");
        let cold = compacted
            .replace("\"cache_read_input_tokens\":3000", "\"cache_read_input_tokens\":1000");
        check_traffic(&[first, &cold, last], "2 lost 2000");
    }

    #[test]
    fn a_request_that_was_broken_off_says_nothing_of_the_cache() {
        check(&[(0, 1, 0, 3000), (2, 0, 0, 0), (9, 10, 3000, 50)], None, "");
        check(
            &[(0, 1, 0, 3000), (2, 0, 0, 0), (9, 10, 0, 3050)],
            None,
            "3 after 1 lost 3000 unknown",
        );
    }
}
