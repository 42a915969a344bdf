//! What of a user's message is the user's own, and what it quotes or pastes. One scan tells them
//! apart, and all that speaks for the user asks it: rules, what takes them back, words, excerpts.

mod closing;
mod lead;
mod line_kind;
mod material;
mod message_scan;
mod page;
mod quotations;
mod sure;

use std::{borrow::Cow, cell::OnceCell, ops::Range};

use self::{
    line_kind::has,
    material::{Kind, Material},
    message_scan::Scan,
    quotations::quotations,
};
use super::sentence::{rule, sentences};
use crate::text::{
    quote::LEFT_OUT,
    words::material::{JOINING, OF_USERS, ORDERS},
};
pub(super) use line_kind::is_chat_head;

/// A user's message, told apart.
pub(crate) struct OwnWords<'t> {
    text: &'t str,
    /// What is quoted or pasted, in order, apart from each other.
    material: Vec<Material>,
    /// Where sentences stand that are certainly the user's: before all that may be material.
    certain: Range<usize>,
    /// Where the user's words begin in what a client sends.
    from: usize,
    /// Where the sentences stand that are surely the user's, once it was asked.
    sure: OnceCell<Range<usize>>,
    /// Where in a log of a chat somebody answers first.
    answer: Option<usize>,
    is_summary: bool,
}

/// A sentence of the user.
pub(super) struct Said<'t> {
    pub(super) text: &'t str,
    /// The same without what it quotes.
    pub(super) own: Cow<'t, str>,
    /// Whether it is certainly the user's.
    pub(super) is_certain: bool,
}

impl<'t> OwnWords<'t> {
    /// Tells a message apart. Where it is not certain that a part is the user's, it is material.
    /// O(n).
    pub(crate) fn of(text: &'t str) -> Self {
        let mut scan = Scan::new(text);
        scan.run();
        let Scan { mut found, from, doubt, second: answer, .. } = scan;
        let (mut at, mut inline) = (0, Vec::new());
        for of in &found {
            quotations(text, at..of.range.start, &mut inline);
            at = at.max(of.range.end);
        }
        quotations(text, at..text.len(), &mut inline);
        found.append(&mut inline);
        found.sort_by_key(|of| of.range.start);
        let is_doubtful = |of: &&Material| of.kind != Kind::Name && of.range.end > from;
        let first = found.iter().find(is_doubtful).map(|of| of.range.start);
        // What is pasted without a mark begins below the first line.
        let line = text.get(from..).unwrap_or_default().trim_start();
        let begins = text.len() - line.len();
        let is_prose = line.starts_with(char::is_alphabetic);
        let line = if is_prose { line.lines().next().unwrap_or_default().len() } else { 0 };
        let end = doubt.into_iter().chain(first).fold(begins + line, usize::min);
        let mut this = Self {
            text,
            material: found,
            certain: from..end,
            from,
            sure: OnceCell::new(),
            answer,
            is_summary: false,
        };
        if !this.is_alone(from) {
            this.certain.end = from;
        }
        this
    }

    /// Where the sentences stand that are surely the user's: what is beside them may be a text of
    /// somebody else, which they lead to, or speak of. All of the text where it is one.
    pub(crate) fn sure(&self) -> Range<usize> {
        self.sure.get_or_init(|| self.find_sure()).clone()
    }

    /// Whether all of it is surely the user's.
    pub(crate) fn is_sure(&self) -> bool {
        self.sure() == (0..self.text.len())
    }

    /// The message from the words on that are surely the user's.
    pub(crate) fn sure_and_after(&self) -> &'t str {
        self.part(self.sure().start..self.text.len())
    }

    fn find_sure(&self) -> Range<usize> {
        // What the user sets into a tag of such a name is the user's, however it is made.
        let is_tag = |of: &Material| {
            let tag = self.part(of.range.clone()).strip_prefix('<').unwrap_or_default();
            let name = tag.split(|c: char| !c.is_alphanumeric() && c != '_').next();
            of.kind == Kind::Heading && name.is_some_and(|of| has(&OF_USERS, &of.to_lowercase()))
        };
        if self.material.iter().any(is_tag) {
            return 0..self.text.len();
        }
        let outside = self.between(&[Kind::Quote, Kind::Paste]).map(|(part, _)| part);
        let from = self.from;
        sure::sure(self.text, outside.map(|part| part.start.max(from)..part.end.max(from)))
    }

    /// Whether the user's words from a place on are one part, which asks nothing: another part may say
    /// whose text the first is.
    fn is_alone(&self, from: usize) -> bool {
        let outside = self.between(&[Kind::Quote, Kind::Paste]);
        let outside = outside.map(|(part, _)| self.part(part.start.max(from)..part.end));
        let lines = outside.flat_map(|part| part.trim().lines().chain([""])).map(str::trim);
        let mut parts = 0;
        let mut is_blank = true;
        for line in lines {
            parts += usize::from(is_blank && !line.is_empty());
            is_blank = line.is_empty();
            if ["?", "？", " — ", " -- "].iter().any(|mark| line.contains(mark)) {
                return false;
            }
        }
        parts < 2 && !self.text.lines().any(|line| line.starts_with("-- ") || line.starts_with('^'))
    }

    /// Tells a summary apart, whose first paragraph says what it is. What only may be material is its
    /// own, and of what it quotes nothing stands without the line that says whose text it is.
    pub(crate) fn of_summary(text: &'t str) -> Self {
        let from = text.find("\n\n").unwrap_or(text.len());
        let mut scan = Scan::new(text.get(from..).unwrap_or_default());
        scan.is_summary = true;
        scan.run();
        let mut material = scan.found;
        material.retain(|of| matches!(of.kind, Kind::Quote | Kind::Paste));
        for of in &mut material {
            of.range = of.range.start + from..of.range.end + from;
        }
        Self { material, is_summary: true, ..Self::all(text) }
    }

    /// Whether what stands from a place on may stand without what is before it.
    pub(crate) fn may_begin(&self, at: usize) -> bool {
        !self.is_summary || self.marks(at).1.is_empty()
    }

    /// A text that is all of one speaker.
    pub(crate) fn all(text: &'t str) -> Self {
        let certain = 0..text.len();
        let (material, answer) = Default::default();
        let sure = OnceCell::from(0..text.len());
        Self { text, material, certain, from: 0, sure, answer, is_summary: false }
    }

    /// The parts of the text between its material that is of one of these kinds, each with whether
    /// material follows.
    fn between(&self, kinds: &'static [Kind]) -> impl Iterator<Item = (Range<usize>, bool)> {
        let (mut at, end) = (0, self.text.len());
        let parts = self.material.iter().filter(|of| kinds.contains(&of.kind));
        let parts = parts.map(|of| (of.range.clone(), true));
        parts.chain([(end..end, false)]).map(move |(range, is_followed)| {
            let part = at..range.start;
            at = range.end;
            (part, is_followed)
        })
    }

    fn part(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// The text with lines around what is pasted in it without an end, by which each part of it says
    /// whose it is. O(n).
    pub(crate) fn labelled(&self) -> Cow<'t, str> {
        let (mut labelled, mut at) = (String::new(), 0);
        for of in &self.material {
            let Some([begin, end]) = of.label else { continue };
            let pasted = self.part(of.range.clone()).trim_start_matches(['\n', '\r']);
            let before = self.part(at..of.range.end - pasted.len());
            labelled.extend([before, begin, "\n", pasted, "\n", end]);
            at = of.range.end;
        }
        if labelled.is_empty() {
            return self.text.into();
        }
        labelled.push_str(self.part(at..self.text.len()));
        labelled.into()
    }

    /// Whether something is pasted in it without an end, which a line around it would have to say.
    pub(crate) fn has_label(&self) -> bool {
        self.material.iter().any(|of| of.label.is_some())
    }

    /// Whether nothing of it is the user's: all stands in tags, or behind marks of a quotation.
    pub(crate) fn is_quotation(&self) -> bool {
        self.between(&[Kind::Quote]).all(|(part, _)| self.part(part).trim().is_empty())
    }

    /// The user's message without the lines that are quoted or pasted, with a mark where they are
    /// left out. A message of nothing else keeps them, each behind the mark of a quotation; of a log of
    /// a chat, what stands before the first answer.
    pub(crate) fn words(&self) -> Cow<'t, str> {
        let own = self.without(&[Kind::Quote, Kind::Paste]);
        if own.contains(char::is_alphanumeric) || self.text.trim().is_empty() {
            return own;
        }
        let mark = |line: &str| {
            if line.trim_start().starts_with('>') { line.into() } else { format!("> {line}") }
        };
        let shown = self.text.get(..self.answer.unwrap_or(self.text.len())).unwrap_or_default();
        let more = self.answer.map(|_| LEFT_OUT.to_owned());
        shown.trim().lines().map(mark).chain(more).collect::<Vec<_>>().join("\n").into()
    }

    /// The text without the tags that stand around it, and what else clients put before it in tags.
    pub(crate) fn inside_of_tags(&self) -> &'t str {
        let tags =
            || self.material.iter().filter(|of| self.part(of.range.clone()).starts_with('<'));
        let is_blank = |range: Range<usize>| self.part(range).trim().is_empty();
        let start = tags()
            .fold(0, |at, of| if is_blank(at..of.range.start) { at.max(of.range.end) } else { at });
        let last = tags().next_back().filter(|of| is_blank(of.range.end..self.text.len()));
        let end = last.map_or(self.text.len(), |of| of.range.start.max(start));
        let inside = self.part(start..end).trim();
        if inside.is_empty() { self.text } else { inside }
    }

    /// What is certain not to be quoted or pasted, with a mark where something is left out.
    pub(crate) fn own(&self) -> Cow<'t, str> {
        let own = self.without(&[Kind::Quote, Kind::Paste, Kind::Sentences]);
        if own.contains(char::is_alphanumeric) { own } else { "".into() }
    }

    /// The text without material of some kinds, with a mark where it is left out.
    fn without(&self, kinds: &'static [Kind]) -> Cow<'t, str> {
        let mut own = String::new();
        for (range, is_followed) in self.between(kinds) {
            let part = self.part(range.clone());
            if range == (0..self.text.len()) {
                return self.text.into();
            }
            if own.is_empty() || !part.trim().is_empty() {
                own.push_str(part);
                own.push_str(if is_followed { LEFT_OUT } else { "" });
            }
        }
        own.into()
    }

    /// The sentences that are surely the user's, in order.
    pub(in crate::steps) fn sentences(&self) -> impl Iterator<Item = Said<'t>> {
        let runs = self.between(&[Kind::Quote, Kind::Paste, Kind::Heading]);
        let said = runs.flat_map(move |(run, _)| {
            sentences(self.part(run)).map(move |said| (self.place_of(said), said))
        });
        let sure = self.sure();
        let said = said.filter(move |(at, _)| sure.contains(at));
        said.map(|(at, said)| self.said(at, said))
    }

    /// The rules among them, each with where it begins.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (usize, &'t str)> {
        let rules = self.sentences().filter(|said| rule::is_rule(&said.own));
        rules.map(|said| (self.place_of(said.text), said.text))
    }

    /// Where a part of the text begins.
    fn place_of(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    fn said(&self, start: usize, text: &'t str) -> Said<'t> {
        let end = start + text.len();
        let from = self.material.partition_point(|of| of.range.end <= start);
        let inside = self.material.get(from..).unwrap_or_default();
        let (mut own, mut at) = (String::new(), start);
        for of in inside.iter().take_while(|of| of.range.start < end) {
            let quoted = self.part(of.range.start.max(start)..of.range.end.min(end));
            if of.kind != Kind::Name || quoted.contains(char::is_whitespace) {
                own.push_str(self.part(at..of.range.start.max(at)));
                own.push('…');
                at = of.range.end.min(end);
            }
        }
        let own: Cow<'t, str> =
            if at == start { text.into() } else { (own + self.part(at..end)).into() };
        let own = match named_text(&own) {
            Some(at) => (own.get(..at).unwrap_or_default().to_owned() + "…").into(),
            None => own,
        };
        let is_labelled = || text.split_once(": ").is_some_and(|(label, _)| !label.contains(','));
        let is_inside = self.certain.start <= start && end <= self.certain.end;
        Said { text, own, is_certain: is_inside && !is_labelled() }
    }

    /// What the text before a place ends with, and what its rest begins with, where the text is cut
    /// there: what is quoted stays quoted.
    pub(crate) fn marks(&self, at: usize) -> (&str, &str) {
        let from = self.material.partition_point(|of| of.range.end <= at);
        let cut = self.material.get(from).filter(|of| of.range.start < at);
        cut.map_or(("", ""), |of| (&of.close, &of.open))
    }

    /// A part of the text, with the marks of what it cuts.
    pub(crate) fn kept(&self, range: Range<usize>) -> String {
        let ((_, open), (close, _)) = (self.marks(range.start), self.marks(range.end));
        let part = self.part(range);
        let close = if part.ends_with('\n') { close.trim_start() } else { close };
        format!("{open}{part}{close}")
    }
}

/// Where the text begins that a sentence names without marks of a quotation: `the title is You may
/// push`. It tells nobody anything.
fn named_text(sentence: &str) -> Option<usize> {
    let mut before = "";
    sentence.split_whitespace().enumerate().find_map(|(place, word)| {
        let is_inside = place > 1
            && before.ends_with(char::is_alphanumeric)
            && !has(&JOINING, &before.to_lowercase());
        before = word;
        let is_begin = is_inside && ORDERS.contains(&word);
        is_begin.then(|| word.as_ptr() as usize - sentence.as_ptr() as usize)
    })
}

#[cfg(test)]
#[path = "own_words_tests.rs"]
mod tests;
