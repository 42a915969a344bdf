//! Images, sounds and documents: by their providers' rules, apart from what is counted as text.

use std::{collections::HashMap, io::Write, sync::Arc};

use afterimage::{
    bill::{MediaGap, MediaItem, MediaKind, MediaRule},
    request::Exchange,
    veil::Frame,
};
use indexmap::IndexMap;

use crate::{
    answer::answer,
    failure::Outcome,
    output::Output,
    style,
    text::{counted, grouped, printable},
    usage::figure,
};

/// The media of the frames of a file.
#[derive(Default)]
pub(super) struct FileMedia(Vec<(Arc<str>, MediaItem)>);

/// What media of one kind cost by one rule, or why nobody knows.
type Row = (MediaKind, Option<Arc<str>>, Result<MediaRule, MediaGap>);

/// The media of a file, added up.
#[derive(Default)]
pub(super) struct MediaSums(IndexMap<Row, (u64, u64)>);

answer! {
    /// The media of a file.
    pub(crate) struct MediaAnswer<'l> {
        /// how many there are
        parts: u64,
        /// the tokens of those whose cost is known
        tokens: u64,
        /// how many are of unknown cost
        unknown: u64,
        /// the same by kind, model and rule
        rows: Vec<MediaRow<'l>>,
    }

    /// Media of one kind by one rule.
    pub(crate) struct MediaRow<'l> {
        /// `image`, `audio` or `document`
        kind: &'static str,
        /// the model that the session names last; null where it names none
        model: Option<&'l str>,
        /// what counts them: `anthropicPatches`, `anthropicPages`, `openaiTiles`, `openaiPatches`,
        /// `googleTiles`, `googleResolution`, `googlePages` or `stated`; null where nobody knows
        /// their cost
        rule: Option<&'static str>,
        /// why nobody knows their cost: `noModel`, `noRule` or `noSize`; null where it is known
        unknown: Option<&'static str>,
        /// how many there are
        parts: u64,
        /// their tokens; null where they are unknown
        tokens: Option<u64>,
    }
}

impl FileMedia {
    pub(super) fn add(&mut self, session: &Arc<str>, frame: &Frame) {
        let items = MediaItem::of_frame(frame).into_iter();
        self.0.extend(items.map(|item| (Arc::clone(session), item)));
    }

    /// Counts each by the rule of the model that its session names last.
    pub(super) fn sums(&self, reported: &[Exchange]) -> MediaSums {
        let mut models: HashMap<&str, &Arc<str>> = HashMap::new();
        for exchange in reported {
            if let Some(model) = exchange.answering_model() {
                models.insert(&exchange.session, model);
            }
        }
        let mut sums = MediaSums::default();
        for (session, item) in &self.0 {
            sums.add(item, models.get(&**session).copied());
        }
        sums
    }
}

impl MediaSums {
    /// Adds an item by the rule of a model.
    fn add(&mut self, item: &MediaItem, model: Option<&Arc<str>>) {
        let (tokens, rule) = match item.tokens(model.map(AsRef::as_ref)) {
            Ok((tokens, rule)) => (tokens, Ok(rule)),
            Err(gap) => (0, Err(gap)),
        };
        let (parts, sum) = self.0.entry((item.kind, model.cloned(), rule)).or_default();
        (*parts, *sum) = (*parts + 1, sum.saturating_add(tokens));
    }

    pub(super) fn answer(&self) -> MediaAnswer<'_> {
        let sum = |of: fn(&(u64, u64)) -> u64| self.0.values().map(of).fold(0, u64::saturating_add);
        let unknown = self.0.iter().filter(|((.., rule), _)| rule.is_err());
        let rows = self.0.iter().map(|((kind, model, rule), (parts, tokens))| MediaRow {
            kind: kind.as_str(),
            model: model.as_deref(),
            rule: rule.ok().map(MediaRule::as_str),
            unknown: rule.err().map(MediaGap::as_str),
            parts: *parts,
            tokens: rule.ok().map(|_| *tokens),
        });
        MediaAnswer {
            parts: sum(|of| of.0),
            tokens: sum(|of| of.1),
            unknown: unknown.map(|(_, (parts, _))| parts).sum(),
            rows: rows.collect(),
        }
    }

    /// A line for each rule; nothing where there is none.
    pub(super) fn print(&self, out: &mut Output) -> Outcome {
        if self.0.is_empty() {
            return Ok(());
        }
        let (bold, dim) = (out.paint.style(style::HEADING), out.paint.style(style::DIM));
        writeln!(out, "\n  {bold}IMAGES AND DOCUMENTS{bold:#}")?;
        writeln!(out, "  {dim}by their providers' rules, beside the counts of texts{dim:#}")?;
        for ((kind, model, rule), (parts, tokens)) in &self.0 {
            let parts = counted(*parts, kind.as_str());
            let model = model.as_deref().map(printable);
            let (tokens, says) = match rule {
                Ok(rule) => (grouped(*tokens), rule.to_string()),
                Err(gap) => ("unknown".to_owned(), said(*gap).to_owned()),
            };
            let of = model.map_or_else(String::new, |model| format!(", for {model}"));
            figure(("tokens", &tokens), &format!("{parts}: {says}{of}"), out)?;
        }
        Ok(())
    }
}

/// Why nobody knows, for people.
fn said(gap: MediaGap) -> &'static str {
    match gap {
        MediaGap::Model => "the session names no model",
        MediaGap::Rule => "no published rule is known",
        MediaGap::Size => "its size is not in the file",
        _ => gap.as_str(),
    }
}
