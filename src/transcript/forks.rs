//! Where a session begins that was forked from another, or resumed into another file: the program
//! copies the records of the first session, and what these report was paid for there.

use super::{draft::FrameDraft, sink::Sink};
use crate::{
    json::{Object, Value},
    veil::{CopyOf, Source},
};

/// A program writes copies one after the other. So long a pause, in milliseconds, ends them.
const PAUSE: i64 = 250;
/// No model answers so fast.
const INSTANT: i64 = 2;

/// The milliseconds since 1970 of a time as RFC 3339 writes it.
pub(super) fn moment(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let rest = text.get(19..)?;
    let behind = rest.strip_prefix('.').unwrap_or(rest);
    let zone = behind.trim_start_matches(|c: char| c.is_ascii_digit());
    let fraction = format!("{:0<3}", behind.strip_suffix(zone)?);
    let offset = match zone.get(..1) {
        Some(sign @ ("+" | "-")) => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let offset = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
            if sign == "-" { -offset } else { offset }
        }
        _ => 0,
    };
    // Years that begin in March, in eras of 400 of them (Howard Hinnant, "chrono-Compatible Low-Level
    // Date Algorithms").
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = year * 365 + year / 4 - year / 100 + year / 400 + of_year - 719_468;
    let minutes = (days * 24 + hour) * 60 + minute - offset;
    Some((minutes * 60 + second) * 1000 + fraction.get(..3)?.parse::<i64>().ok()?)
}

/// The milliseconds since 1970 at which a UUID was made that holds its time (version 7).
fn minted(id: &str) -> Option<i64> {
    let is_of_time = id.len() == 36 && id.get(14..15) == Some("7");
    let digits = id.get(..13).filter(|_| is_of_time)?.replace('-', "");
    i64::from_str_radix(&digits, 16).ok()
}

/// The beginning of a rollout of Codex: what it copies stands before its own.
///
/// The times of the copies are those of the first session, or all of the moment of the fork. Turns
/// have ids that hold their times, and some versions write the session's own header again behind the
/// copies.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that a rollout may say")]
pub(super) struct RolloutFork {
    id: Option<String>,
    /// The session that it was forked from, where it says so; whether it says that it was.
    from: Option<String>,
    is_named: bool,
    /// When it was forked.
    at: Option<i64>,
    /// Whether its own records have begun.
    is_own: bool,
    /// Whether a record is older than the session, and whether the turn that goes on is.
    has_older: bool,
    is_old_turn: bool,
    /// When the last record was written, and the last that a model was to answer.
    last: Option<i64>,
    asked: Option<i64>,
    /// How much was asked so far, and how many answers reported their usage; how many of these came
    /// as soon as they were asked for.
    questions: u64,
    answers: u64,
    instant: u64,
}

impl RolloutFork {
    /// Takes a header: the first is the session's own, others are those of the sessions before it.
    pub(super) fn header(
        &mut self,
        meta: &Object,
        (line, stamp): (u64, Option<&str>),
        sink: &mut Sink,
    ) {
        let text = |key: &str| meta.get(key).and_then(Value::as_str).map(str::to_owned);
        let id = text("id");
        if self.id.is_none() {
            self.from = text("forked_from_id").filter(|from| !from.is_empty());
            self.is_named = self.from.is_some();
            self.at = text("timestamp").as_deref().and_then(moment);
            self.at = self.at.or_else(|| minted(id.as_deref()?)).or_else(|| moment(stamp?));
            self.last = stamp.and_then(moment);
            self.id = Some(id.unwrap_or_default());
        } else if self.id == id {
            self.begin_own(line, self.is_named, sink);
        } else if !self.is_own && self.answers == 0 {
            self.is_named = true;
            self.from = self.from.take().or(id);
        }
    }

    /// Takes a record, before it is read; `asks` where a model is to answer it.
    pub(super) fn record(
        &mut self,
        (line, stamp): (u64, Option<&str>),
        asks: bool,
        sink: &mut Sink,
    ) {
        let Some(now) = stamp.and_then(moment).filter(|_| !self.is_own) else { return };
        let is_before = self.at.is_some_and(|at| now < at);
        let is_pause = self.last.is_some_and(|last| now - last >= PAUSE);
        if self.is_named && is_before {
            self.has_older = true;
        } else if self.has_older {
            self.begin_own(line, true, sink);
        } else if is_pause && !self.is_old_turn {
            let is_replay = self.answers > 1 && self.questions > 1 && self.instant == self.answers;
            self.begin_own(line, self.is_named || is_replay, sink);
        }
        self.last = Some(now);
        if asks {
            self.asked = Some(now);
            self.questions += 1;
        }
    }

    /// Takes the id of a turn that begins.
    pub(super) fn turn(&mut self, id: &str, line: u64, sink: &mut Sink) {
        let Some((minted, at)) = minted(id).zip(self.at).filter(|_| self.is_named) else { return };
        if minted >= at {
            self.begin_own(line, true, sink);
        } else {
            self.is_old_turn = true;
        }
    }

    /// Takes the report of what an answer cost.
    pub(super) fn answer(&mut self, stamp: Option<&str>) {
        let waited = stamp.and_then(moment).zip(self.asked).map(|(now, asked)| now - asked);
        self.answers += 1;
        self.instant += u64::from(waited.is_some_and(|waited| waited <= INSTANT));
    }

    /// The session's own records begin. What was read so far `is_copied`.
    fn begin_own(&mut self, line: u64, is_copied: bool, sink: &mut Sink) {
        if std::mem::replace(&mut self.is_own, true) || !is_copied || self.questions == 0 {
            return;
        }
        let mut draft = FrameDraft::record(Source::Environment, line);
        draft.copied_before = Some(CopyOf { session: self.from.as_deref().map(Box::from) });
        sink.push(draft);
    }

    /// The file ends. Where nothing says where the copies do, this is told.
    pub(super) fn finish(&mut self, line: u64, sink: &mut Sink) {
        if self.is_own || !self.is_named || self.answers == 0 {
            return;
        }
        let is_told = self.has_older || self.is_old_turn;
        let is_known = is_told || self.last.is_some();
        if !is_told {
            let taken = if is_known { "all are taken for copies" } else { "all are counted" };
            let from = self.from.as_deref().unwrap_or("another session");
            let says = "nothing tells its own answers from those that it copied";
            sink.note(line, &format!("forked from {from}, and {says}: {taken}"));
        }
        self.begin_own(line, is_known, sink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        assert_eq!(moment("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(moment("2000-02-29T00:00:00.5Z"), Some(951_782_400_500));
        assert_eq!(moment("2026-11-23T06:34:38.44291668+01:00"), Some(1_795_412_078_442));
        for text in ["", "t", "2026-11-23", "2026-11-23T06:34:38.4+x", "äöüäöüäöüäöü"] {
            assert_eq!(moment(text), None, "{text}");
        }
        assert_eq!(minted("019ac4f1-8000-7000-8000-00000000000a"), Some(0x019a_c4f1_8000));
        assert_eq!(minted("019ac4f1-8000-4000-8000-00000000000a"), None);
    }
}
