//! Streams: what an answer says is split over many events, or over many lines of JSON.

use std::{borrow::Cow, fmt, ops::Range};

use super::{
    Redactor,
    json_text::{LiteralKind, decoded, walk},
    log_lists::GatheredReplacements,
    pieces::{Indexes, Parts, PieceForm},
    redactor::Replacement,
};

/// How a stream is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamForm {
    /// Server-sent events, with JSON after `data:`.
    Events,
    /// A value of JSON on each line.
    Lines,
}

/// The data of an event is joined up to this length, since it is read again with each line.
const LONGEST_BEGUN: usize = 16 << 10;

impl StreamForm {
    /// The form of a body; `None` where it is no stream. O(body).
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next()?;
        if ["data:", "event:", "id:", "retry:", ":"].iter().any(|start| first.starts_with(start)) {
            return Some(Self::Events);
        }
        let is_json = |line: &str| line.starts_with('{') && walk(line, |_| {}).is_some();
        let mut last = lines.next().filter(|_| is_json(first))?;
        // The last line may have broken off.
        let is_stream = lines.all(|line| is_json(std::mem::replace(&mut last, line)));
        is_stream.then_some(Self::Lines)
    }

    /// The streams that stand in a text, as in what a command printed, in order. O(text).
    pub(super) fn within(text: &str) -> Vec<(Range<usize>, Self)> {
        let mut streams: Vec<(Range<usize>, usize, Self)> = Vec::new();
        if !text.contains("data:") && !text.contains("{\"") {
            return Vec::new();
        }
        let (mut end, mut is_open) = (0, false);
        for line in text.split_inclusive(['\n', '\r']) {
            let start = end;
            end += line.len();
            let data = line.strip_prefix("data:").map(str::trim_start);
            let form = match data {
                Some(data) if is_open || data.starts_with('{') => Some(Self::Events),
                None if line.starts_with("{\"") && walk(line, |_| {}).is_some() => {
                    Some(Self::Lines)
                }
                _ => None,
            };
            match (streams.last_mut().filter(|_| is_open), form) {
                (Some((range, count, of)), Some(form)) if *of == form => {
                    range.end = end;
                    *count += usize::from(data.is_none_or(|data| data.starts_with('{')));
                }
                (_, Some(form)) => {
                    is_open = true;
                    streams.push((start..end, 1, form));
                }
                (_, None) => {
                    let is_between = ["event:", "id:", "retry:", ":", "data:"];
                    is_open &= line.trim().is_empty()
                        || is_between.iter().any(|start| line.starts_with(start));
                }
            }
        }
        streams.retain(|(_, count, _)| *count > 1);
        streams.into_iter().map(|(range, _, form)| (range, form)).collect()
    }

    /// What a line has of JSON.
    fn data(self, line: &str) -> Option<&str> {
        match self {
            Self::Events => line.strip_prefix("data:"),
            Self::Lines => Some(line),
        }
    }

    /// Hands over the lines of a stream: where each begins behind its name, what it has, and whether
    /// that is data. The data of an event that stands on several lines is one, with spaces for what
    /// parts the lines.
    fn each_line(self, text: &str, mut take: impl FnMut(usize, &str, bool)) {
        let mut last: Option<(usize, Cow<'_, str>, bool)> = None;
        let mut start = 0;
        let is_end = |c: char| c == '\n' || self == Self::Events && c == '\r';
        for line in text.split_inclusive(is_end) {
            start += line.len();
            let data = self.data(line);
            let at = start - data.unwrap_or(line).len();
            let is_more = data.is_some() && self == Self::Events;
            let before = last.as_mut().filter(|(_, _, is_data)| *is_data && is_more);
            let begun = before.filter(|(_, data, _)| {
                let is_begun = data.trim_start().starts_with(['{', '[']);
                is_begun && data.len() <= LONGEST_BEGUN && walk(data, |_| {}).is_none()
            });
            if let (Some((_, begun, _)), Some(data)) = (begun, data) {
                let length = begun.trim_end().len();
                let begun = begun.to_mut();
                let between = begun.len() - length + line.len() - data.len();
                begun.truncate(length);
                begun.extend(std::iter::repeat_n(' ', between));
                begun.push_str(data);
                continue;
            }
            let is_half = line == "\n" && text.get(..at).is_some_and(|text| text.ends_with('\r'));
            // The other half of a line's end.
            if let Some((_, last, _)) = last.as_mut().filter(|_| is_half) {
                last.to_mut().push('\n');
                continue;
            }
            let line = (at, Cow::Borrowed(data.unwrap_or(line)), data.is_some());
            if let Some((at, data, is_data)) = last.replace(line) {
                take(at, &data, is_data);
            }
        }
        if let Some((at, data, is_data)) = last {
            take(at, &data, is_data);
        }
    }
}

impl Redactor {
    /// What of a stream is to be replaced, in order.
    pub(super) fn find_in_stream(
        &mut self,
        text: &str,
        form: StreamForm,
        is_cut: bool,
        place: &dyn fmt::Display,
    ) -> Vec<Replacement> {
        let mut found = GatheredReplacements::default();
        let mut parts = Parts::default();
        form.each_line(text, |at, data, is_data| {
            let start = at + data.len();
            let is_event = is_data && data.trim_start().starts_with(['{', '[', '"']);
            let is_last = start == text.len() && !data.ends_with(['\n', '\r']);
            if is_cut && is_last && is_data && walk(data, |_| {}).is_none() {
                // It goes on from pieces before it, and does not say from which.
                found.secrets.push((at..start, String::new()));
                return;
            }
            if !is_event || walk(data, |_| {}).is_none() {
                let whole = self.find(data, place).into_iter();
                found.secrets.extend(whole.map(|(of, to)| (at + of.start..at + of.end, to)));
                return;
            }
            let indexes = Indexes::of(data);
            walk(data, |literal| {
                let range = at + literal.range.start..at + literal.range.end;
                if literal.kind == LiteralKind::LogList {
                    return found.log_lists.push(range);
                }
                let piece = PieceForm::of(literal)
                    .and_then(|form| Some((form, decoded(data, &literal.range)?)));
                let Some((form, said)) = piece else {
                    let whole = self.find_in_literal(data, literal, place).into_iter();
                    found.secrets.extend(whole.map(|(of, to)| (at + of.start..at + of.end, to)));
                    return;
                };
                parts.add(indexes.key(literal), literal.name, form, (range, said));
            });
        });
        self.parts(&parts, is_cut, place, &mut found.secrets);
        let mut found = found.into_replacements(text);
        if form == StreamForm::Lines && !is_cut {
            self.add_written(text, &mut found, place);
        }
        found
    }
}
