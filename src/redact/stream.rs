//! Streams: what an answer says is split over many events, or over many lines of JSON.

use std::{borrow::Cow, fmt};

use super::{
    Redactor,
    json_text::{LiteralKind, decoded, walk},
    log_lists::GatheredReplacements,
    pieces::{Indexes, Parts, PieceForm},
    redactor::replaced,
};

/// How a stream is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamForm {
    /// Server-sent events, with JSON after `data:`.
    Events,
    /// A value of JSON on each line.
    Lines,
}

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

    /// What a line has of JSON.
    fn data(self, line: &str) -> Option<&str> {
        match self {
            Self::Events => line.strip_prefix("data:"),
            Self::Lines => Some(line),
        }
    }
}

impl Redactor {
    pub(super) fn stream<'t>(
        &mut self,
        text: &'t str,
        form: StreamForm,
        is_cut: bool,
        place: &dyn fmt::Display,
    ) -> Cow<'t, str> {
        let mut found = GatheredReplacements::default();
        let mut parts = Parts::default();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            start += line.len();
            let data = form.data(line).unwrap_or(line);
            let at = start - data.len();
            let is_event =
                form.data(line).is_some() && data.trim_start().starts_with(['{', '[', '"']);
            let is_last = start == text.len() && !line.ends_with('\n');
            if is_cut && is_last && form.data(line).is_some() && walk(data, |_| {}).is_none() {
                // It goes on from pieces before it, and does not say from which.
                found.secrets.push((at..start, String::new()));
                continue;
            }
            if !is_event || walk(data, |_| {}).is_none() {
                let whole = self.find(data, place).into_iter();
                found.secrets.extend(whole.map(|(of, to)| (at + of.start..at + of.end, to)));
                continue;
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
        }
        self.parts(&parts, is_cut, place, &mut found.secrets);
        let found = found.into_replacements(text);
        if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replaced(text, &found)) }
    }
}
