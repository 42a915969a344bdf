//! Putting a summary together: the most useful lines that fit.
//!
//! Each piece of text comes in two forms: with the ages as they are, and with the longest ages
//! that they are likely to grow to. What fits is decided by the second, so that a summary a tick
//! later holds the same lines.

use std::collections::HashMap;

use super::{
    Account, Age, Form, IgnoreReason, Moment, ObservationInfo, OutlineEntry, Policy, Rank,
    RejectedAnswerInfo, Summary, SummaryEnding, SummarySection,
    shown::{self, LABEL_CHARS},
};
use crate::tokens::TokenCounter;

/// The most characters that the name of an account or an observation may take.
const NAME_CHARS: usize = 64;
/// The bytes that a token of the limit stands for at most: text of many short tokens is bounded by
/// these, text of few long ones by its tokens.
const BYTES_PER_TOKEN: usize = 4;
/// How many lines in a row may be passed over because they are too long.
const MISSES: usize = 16;
/// The ages that room is kept for.
const WIDEST_TICKS: u64 = 999_999;

/// Where a summary comes from.
pub(super) struct Composer<'a> {
    pub(super) policy: &'a Policy,
    pub(super) counter: &'a dyn TokenCounter,
    pub(super) account: &'a Account,
    pub(super) asides: &'a [RejectedAnswerInfo],
    pub(super) now: Moment,
    pub(super) limit: usize,
}

/// A piece of text as it is, and as long as it may get.
#[derive(Clone, Debug, Default)]
struct Piece {
    text: String,
    widest: String,
    /// Which observation it is about.
    section: Option<usize>,
    /// Whether it stands after the sections.
    is_closing: bool,
    /// Whether a blank line stands between it and what follows.
    is_heading: bool,
}

impl Piece {
    fn plain(text: String) -> Self {
        Self { widest: text.clone(), text, ..Self::default() }
    }

    /// The same piece after the sections, with room for the blank line before the first of them.
    fn closing(self) -> Self {
        Self { widest: format!("\n{}", self.widest), is_closing: true, ..self }
    }

    /// The same piece before lines, with room for the blank line between.
    fn heading(self) -> Self {
        Self { widest: format!("{}\n", self.widest), is_heading: true, ..self }
    }

    fn of(self, section: usize) -> Self {
        Self { section: Some(section), ..self }
    }

    /// What `write` makes of an age.
    fn aged(age: Age, mut write: impl FnMut(Age) -> String) -> Self {
        let widest = match age {
            Age::Ticks(ticks) => Age::Ticks(ticks.max(WIDEST_TICKS)),
            // A tick or a second from now this will be one.
            Age::JustNow => Age::Ticks(WIDEST_TICKS),
            // No number is longer than that of the seconds in a minute.
            Age::Seconds(seconds) => Age::Seconds(seconds.max(3_599)),
        };
        Self { text: write(age), widest: write(widest), ..Self::default() }
    }
}

/// A piece with its place in the text and its worth.
struct Candidate {
    piece: Piece,
    place: usize,
    /// Which of those that do not fit are left out first.
    worth: (u8, Rank, usize, usize),
}

/// Worths, the greatest first.
const HEAD: u8 = 0;
const SECTION: u8 = 1;
const STALE: u8 = 2;
const LINE: u8 = 3;
const NOTE: u8 = 4;

impl Composer<'_> {
    /// The summary of these observations.
    pub(super) fn compose(&self, infos: &[ObservationInfo]) -> Summary {
        let mut order: Vec<&ObservationInfo> = infos.iter().collect();
        order.sort_by_key(|info| (self.policy.place_of(&info.tool), info.name.as_str()));
        let mut candidates = Vec::new();
        let mut add = |worth: (u8, Rank, usize, usize), piece: Piece| {
            candidates.push(Candidate { piece, place: candidates.len(), worth });
        };
        add((HEAD, Rank::Changed, 0, 0), self.head(&order));
        let facts = self.newest_facts(&order);
        let mut hints: Vec<String> = Vec::new();
        for (at, info) in order.iter().enumerate() {
            if self.policy.form == Form::Sections {
                add((SECTION, Rank::Changed, at, 0), self.heading(info).of(at));
            }
            let warnings = self.damage_line(info).into_iter().chain(self.aside_line(info));
            let warnings = warnings.chain(self.stale_lines(info));
            for (line, warning) in warnings.enumerate() {
                add((STALE, Rank::Changed, at, line), warning.of(at));
            }
            for (line, entry) in info.outline.entries.iter().enumerate() {
                if facts.get(self.fact(info, entry)).is_some_and(|newest| *newest != at) {
                    continue;
                }
                add((LINE, entry.rank, line, at), self.line(info, entry).of(at));
            }
            // Observations of one tool for several arguments leave their rest out for one reason.
            if let Some(rest) = self.rest(info).filter(|rest| !hints.contains(&rest.text)) {
                hints.push(rest.text.clone());
                add((NOTE, Rank::Count, at, 0), rest.of(at));
            }
        }
        let is_unknown =
            |aside: &&RejectedAnswerInfo| order.iter().all(|info| info.name != aside.name);
        for (line, aside) in self.asides.iter().filter(is_unknown).enumerate() {
            add((STALE, Rank::Changed, order.len(), line), self.unknown(aside));
        }
        for (at, note) in self.closing(&order).into_iter().enumerate() {
            let worth = if note.section.is_some() { STALE } else { NOTE };
            add((worth, Rank::Changed, at, 0), note);
        }
        let chosen = self.choose(candidates);
        self.written(&order, &chosen)
    }

    /// The observation in which each fact was seen last: without sections a fact that two tools
    /// tell stands once. Empty where there are sections.
    fn newest_facts<'i>(&self, order: &[&'i ObservationInfo]) -> HashMap<&'i str, usize> {
        let mut newest: HashMap<&str, (Moment, usize)> = HashMap::new();
        let order = if self.policy.form == Form::Short { order } else { &[] };
        for (at, info) in order.iter().enumerate() {
            for entry in &info.outline.entries {
                let seen = entry.seen.unwrap_or(info.seen);
                let known = newest.entry(self.fact(info, entry)).or_insert((seen, at));
                if known.0.is_before(seen) {
                    *known = (seen, at);
                }
            }
        }
        newest.into_iter().map(|(fact, (_, at))| (fact, at)).collect()
    }

    /// What a line tells: the label of a line of the policy, else the whole of it.
    fn fact<'i>(&self, info: &ObservationInfo, entry: &'i OutlineEntry) -> &'i str {
        let label = entry.text.split_once(':').map(|(label, _)| label);
        let lines = self.policy.rule_of(&info.tool).map(|rule| rule.lines.as_slice());
        let is_of_policy =
            |label: &&str| lines.is_some_and(|lines| lines.iter().any(|line| line.label == *label));
        label.filter(is_of_policy).unwrap_or(&entry.text)
    }

    /// The candidates that fit, in the order of the text.
    fn choose(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        candidates.sort_by_key(|candidate| candidate.worth);
        let is_sectioned = self.policy.form == Form::Sections;
        let mut chosen: Vec<Candidate> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let (mut tokens, mut bytes, mut misses) = (0, 0, 0);
        let most_bytes = self.limit.saturating_mul(BYTES_PER_TOKEN);
        for candidate in candidates {
            let is_head = candidate.worth.0 == HEAD;
            let needs_section = is_sectioned && !matches!(candidate.worth.0, HEAD | SECTION);
            if needs_section
                && candidate.piece.section.is_some_and(|section| !open.contains(&section))
            {
                continue;
            }
            if misses > MISSES || (!is_head && chosen.is_empty()) {
                break;
            }
            let widest = &candidate.piece.widest;
            if bytes + widest.len() > most_bytes {
                misses += 1;
                continue;
            }
            let left = self.limit.saturating_sub(tokens);
            let Some(count) = self.counter.count_up_to(widest, left) else {
                misses += 1;
                continue;
            };
            misses = 0;
            (tokens, bytes) = (tokens + count, bytes + widest.len());
            if candidate.worth.0 == SECTION {
                open.extend(candidate.piece.section);
            }
            chosen.push(candidate);
        }
        // Tokens of joined pieces do not add up, and an age may be longer than it was thought to
        // get: what counts is the whole text.
        while !chosen.is_empty() && !self.fits(&chosen) {
            chosen.pop();
        }
        chosen.sort_by_key(|candidate| candidate.place);
        chosen
    }

    fn fits(&self, chosen: &[Candidate]) -> bool {
        let mut pieces: Vec<&Candidate> = chosen.iter().collect();
        pieces.sort_by_key(|candidate| candidate.place);
        let pieces = || pieces.iter().map(|candidate| &candidate.piece);
        let widest: String = pieces().map(|piece| piece.widest.as_str()).collect();
        [joined(pieces()), widest].iter().all(|text| {
            text.len() <= self.limit.saturating_mul(BYTES_PER_TOKEN)
                && self.counter.count_up_to(text, self.limit).is_some()
        })
    }

    fn written(&self, order: &[&ObservationInfo], chosen: &[Candidate]) -> Summary {
        let text = joined(chosen.iter().map(|candidate| &candidate.piece));
        let mut sections: Vec<Option<SummarySection>> = vec![None; order.len()];
        for candidate in chosen {
            let Some(at) = candidate.piece.section else { continue };
            let (Some(section), Some(info)) = (sections.get_mut(at), order.get(at)) else {
                continue;
            };
            let section = section.get_or_insert_with(|| SummarySection {
                name: info.name.clone(),
                tool: info.tool.clone(),
                bytes: 0,
                stands_for: info.bytes,
                is_stale: !info.stale.is_empty(),
                is_damaged: info.damage.is_some(),
                is_old: self.policy.is_old(info, self.now),
            });
            section.bytes += candidate.piece.text.len() as u64;
        }
        let tokens = self.counter.count(&text) as u64;
        let account = Some(self.account.name.clone());
        Summary { text, tokens, account, sections: sections.into_iter().flatten().collect() }
    }

    /// The lines before the sections.
    fn head(&self, order: &[&ObservationInfo]) -> Piece {
        let heading = &self.policy.heading;
        let name = shown::clean(&self.account.name, NAME_CHARS);
        let note = order.iter().find_map(|info| info.outline.account_note.as_deref());
        let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
        let readable = order.iter().filter(|info| info.damage.is_none());
        let updated = readable.map(|info| info.updated).reduce(Moment::latest);
        let Some(updated) = updated else {
            let nothing = match order.first() {
                None => "Nothing has been observed yet.",
                Some(_) => "What was observed is damaged: when it was last updated is not known.",
            };
            return Piece::plain(match self.policy.form {
                Form::Sections => {
                    format!("## {heading}\n\n**Account:** {name}\n\n{nothing}\n")
                }
                Form::Short => format!("{heading}:\n  Account: {name}\n  {nothing}\n"),
            });
        };
        Piece::aged(updated.age(self.now), |age| match self.policy.form {
            Form::Sections => {
                let age = age.long(self.policy.millis_per_tick);
                format!("## {heading}\n\n**Account:** {name}{note}\n**Last Updated:** {age}\n")
            }
            Form::Short => {
                format!("{heading} (updated {}):\n  Account: {name}{note}\n", age.short())
            }
        })
    }

    fn heading(&self, info: &ObservationInfo) -> Piece {
        let title = self.policy.rule_of(&info.tool).and_then(|rule| rule.title.clone());
        let title = title.unwrap_or_else(|| title_of(&info.tool));
        let name = shown::clean(&info.name, NAME_CHARS);
        let part = if info.is_partial { ", in part" } else { "" };
        if info.damage.is_some() {
            return Piece::plain(format!("\n### {title} ({name} - damaged)\n")).heading();
        }
        Piece::aged(info.seen.age(self.now), |age| {
            format!("\n### {title} ({name} - {}{part})\n", age.short())
        })
        .heading()
    }

    /// That an observation cannot be read.
    fn damage_line(&self, info: &ObservationInfo) -> Option<Piece> {
        info.damage.as_ref()?;
        let name = shown::clean(&info.tool, NAME_CHARS);
        Some(Piece::plain(match self.policy.form {
            Form::Sections => format!("- Damaged: it cannot be read. Call {name}.\n"),
            Form::Short => format!("  {name} is damaged: it cannot be read\n"),
        }))
    }

    /// That the last answers did not replace an observation.
    fn aside_line(&self, info: &ObservationInfo) -> Option<Piece> {
        let aside = self.asides.iter().find(|aside| aside.name == info.name)?;
        let (what, name) = (aside.what(), shown::clean(&info.tool, NAME_CHARS));
        Some(self.aside(aside, |age| match self.policy.form {
            Form::Sections => format!("- Not updated{age}: {what}\n"),
            Form::Short => format!("  Not updated in {name}{age}: {what}\n"),
        }))
    }

    /// That no answer could be used so far.
    fn unknown(&self, aside: &RejectedAnswerInfo) -> Piece {
        let title = self.policy.rule_of(&aside.tool).and_then(|rule| rule.title.clone());
        let title = title.unwrap_or_else(|| title_of(&aside.tool));
        let (what, name) = (aside.what(), shown::clean(&aside.name, NAME_CHARS));
        self.aside(aside, |age| match self.policy.form {
            Form::Sections => format!(
                "\n### {title} ({name} - not known)\n\n- No usable answer yet{age}: {what}\n"
            ),
            Form::Short => format!("  No usable answer of {name} yet{age}: {what}\n"),
        })
    }

    /// What `write` makes of the age of an answer that was set aside. Of a damaged one it is not known.
    fn aside(&self, aside: &RejectedAnswerInfo, write: impl Fn(&str) -> String) -> Piece {
        if aside.reason == IgnoreReason::Damaged {
            return Piece::plain(write(""));
        }
        Piece::aged(aside.seen.age(self.now), |age| match aside.count {
            0 | 1 => write(&format!(" ({})", age.short())),
            count => write(&format!(" ({count} times, the last {})", age.short())),
        })
    }

    /// A line for what is out of date: all that one tool made so at one time stands on one.
    fn stale_lines(&self, info: &ObservationInfo) -> Vec<Piece> {
        let mut groups: Vec<(&str, Moment, Vec<String>)> = Vec::new();
        for mark in &info.stale {
            let path = shown::label(mark.path.segments()).to_lowercase();
            match groups.iter_mut().find(|(by, since, _)| *by == mark.by && *since == mark.since) {
                Some((.., paths)) => paths.push(path),
                None => groups.push((&mark.by, mark.since, vec![path])),
            }
        }
        let name = shown::clean(&info.tool, NAME_CHARS);
        let line = |(by, since, paths): (&str, Moment, Vec<String>)| {
            let by = shown::clean(by, NAME_CHARS);
            let is_whole = paths.iter().any(String::is_empty);
            let what = if is_whole { "all of it".to_owned() } else { paths.join(", ") };
            Piece::aged(since.age(self.now), |age| {
                let age = age.short();
                match self.policy.form {
                    Form::Sections => format!("- Stale since {by} ({age}): {what}. Call {name}.\n"),
                    Form::Short => format!("  Stale in {name} since {by} ({age}): {what}\n"),
                }
            })
        };
        groups.into_iter().map(line).collect()
    }

    fn line(&self, info: &ObservationInfo, entry: &OutlineEntry) -> Piece {
        let (before, below) = match self.policy.form {
            Form::Sections => ("- ", "  - "),
            Form::Short => ("  ", "    "),
        };
        let items: String = entry.items.iter().map(|item| format!("{below}{item}\n")).collect();
        // Without sections a line that is not as old as the rest says so itself.
        let seen = entry.seen.or((self.policy.form == Form::Short).then_some(info.seen));
        match seen {
            None => Piece::plain(format!("{before}{}\n{items}", entry.text)),
            Some(seen) => Piece::aged(seen.age(self.now), |age| {
                format!("{before}{} ({})\n{items}", entry.text, age.short())
            }),
        }
    }

    /// The hint where the lines leave something out.
    fn rest(&self, info: &ObservationInfo) -> Option<Piece> {
        let has_more = info.outline.omitted > 0
            || info.outline.entries.iter().any(|entry| entry.rank == Rank::Count);
        let rule = self.policy.rule_of(&info.tool)?;
        let is_marked_count = rule.only_marked;
        if self.policy.form == Form::Short || rule.hint.is_empty() || !(has_more || is_marked_count)
        {
            return None;
        }
        let tool = shown::clean(&info.tool, LABEL_CHARS);
        Some(Piece::plain(format!("- {}\n", rule.hint.replace("{tool}", &tool))))
    }

    /// The notes, or the line with the tools to call. Those about an observation name it.
    fn closing(&self, order: &[&ObservationInfo]) -> Vec<Piece> {
        match self.policy.closing {
            SummaryEnding::Nothing => Vec::new(),
            SummaryEnding::Update => {
                let mut tools: Vec<&str> = Vec::new();
                let partial = self.policy.partials.iter().map(|rule| rule.tool.as_str());
                for tool in order.iter().map(|info| info.tool.as_str()).chain(partial) {
                    if !tools.contains(&tool) {
                        tools.push(tool);
                    }
                }
                let tools: Vec<_> =
                    tools.into_iter().map(|tool| shown::clean(tool, LABEL_CHARS)).collect();
                if tools.is_empty() {
                    return Vec::new();
                }
                vec![Piece::plain(format!("To update: call {}\n", tools.join(", "))).closing()]
            }
            SummaryEnding::Notes => {
                let notes = self.policy.notes.iter();
                let notes = notes.map(|note| Piece::plain(format!("**Note:** {note}\n")).closing());
                let old = order.iter().enumerate();
                let old = old.filter_map(|(at, info)| Some(self.old_note(info)?.of(at).closing()));
                notes.chain(old).collect()
            }
        }
    }

    /// That an observation is old. Room is kept before it is.
    fn old_note(&self, info: &ObservationInfo) -> Option<Piece> {
        let rule = self.policy.rule_of(&info.tool).filter(|_| info.damage.is_none())?;
        rule.stale_after_ticks?;
        let name = shown::clean(&info.name, NAME_CHARS);
        let note = &rule.stale_note;
        let mut piece = Piece::aged(info.seen.age(self.now), |age| {
            format!("**Stale data:** {name} is {} old - {note}.\n", age.bare())
        });
        if !self.policy.is_old(info, self.now) {
            piece.text.clear();
        }
        Some(piece)
    }
}

/// The text of pieces, with a blank line after a heading that has lines, and one before the first
/// piece that closes it.
fn joined<'p>(pieces: impl Iterator<Item = &'p Piece>) -> String {
    let mut text = String::new();
    let (mut is_closed, mut is_headed) = (false, false);
    for piece in pieces.filter(|piece| !piece.text.is_empty()) {
        let closes = piece.is_closing && !is_closed;
        let follows = is_headed && !piece.is_heading && !piece.is_closing;
        if closes || follows {
            text.push('\n');
        }
        is_closed |= piece.is_closing;
        is_headed = piece.is_heading;
        text.push_str(&piece.text);
    }
    text
}

/// `get_status` is "Status".
fn title_of(tool: &str) -> String {
    let name = tool.strip_prefix("get_").unwrap_or(tool).replace('_', " ");
    shown::capitalised(&shown::clean(&name, LABEL_CHARS))
}
