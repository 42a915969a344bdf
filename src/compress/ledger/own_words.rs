//! What of a user's message is the user's own, and what it quotes or pastes. One scan tells them
//! apart, and all that speaks for the user asks it: rules, what takes them back, words, excerpts.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use super::{
    correction::{correction, says_instead},
    excerpt::LEFT_OUT,
    material_words::{
        ACCORDING, ARTICLES, BLOCKS, COMMENTS, CONDITIONS, FORMATTING, HANDLING, LABELS, LEVELS,
        OF_CLIENTS, OF_USERS, PASSIVE, PASTED, PLURALS, POINTING, PRESENTING, QUOTES, REQUESTS,
        SCOPES, SELVES, SHOWING, SPEECH, UNSPACED, WANTED,
    },
    quotations::{is_mark, quotations},
    rule,
    sentence::{sentences, words},
};

/// A longer tag is none.
const LONGEST_TAG: usize = 2_000;

/// A user's message, told apart.
pub(crate) struct OwnWords<'t> {
    text: &'t str,
    /// What is quoted or pasted, in order, apart from each other.
    material: Vec<Material>,
    /// Where sentences stand that are certainly the user's: before all that may be material.
    certain: Range<usize>,
}

/// A part of a message that is not the user's.
#[derive(Debug)]
pub(super) struct Material {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
    /// What its rest begins with, and its beginning ends with, where a text is cut inside of it.
    pub(super) open: String,
    pub(super) close: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// In tags, or behind marks of a quotation.
    Quote,
    Paste,
    /// A heading or the tag of a client: no rule, but no material either.
    Heading,
    /// Whole sentences inside of a line.
    Sentences,
    /// Less than a sentence: a name, a word.
    Name,
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
        let Scan { mut found, from, doubt, .. } = scan;
        let (mut at, mut inline) = (0, Vec::new());
        for end in found.iter().map(|of| of.range.clone()).chain([text.len()..text.len()]) {
            quotations(text, at..end.start, &mut inline);
            at = at.max(end.end);
        }
        found.append(&mut inline);
        found.sort_by_key(|of| of.range.start);
        let is_doubtful = |of: &&Material| of.kind != Kind::Name && of.range.end > from;
        let first = found.iter().find(is_doubtful).map(|of| of.range.start);
        let end = doubt.into_iter().chain(first).min().unwrap_or(text.len());
        Self { text, material: found, certain: from..end }
    }

    /// A text that is all of one speaker.
    pub(crate) fn all(text: &'t str) -> Self {
        Self { text, material: Vec::new(), certain: 0..text.len() }
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

    /// Whether nothing of it is the user's: all stands in tags, or behind marks of a quotation.
    pub(super) fn is_quotation(&self) -> bool {
        self.between(&[Kind::Quote]).all(|(part, _)| self.part(part).trim().is_empty())
    }

    /// The user's words, with a mark where material is left out.
    pub(super) fn words(&self) -> Cow<'t, str> {
        let mut own = String::new();
        for (range, is_followed) in self.between(&[Kind::Quote, Kind::Paste, Kind::Sentences]) {
            let part = self.part(range.clone());
            if range == (0..self.text.len()) {
                return self.text.into();
            }
            if own.is_empty() || !part.trim().is_empty() {
                own.push_str(part);
                own.push_str(if is_followed { LEFT_OUT } else { "" });
            }
        }
        if own.contains(char::is_alphanumeric) { own.into() } else { "".into() }
    }

    /// The user's sentences, in order.
    pub(super) fn sentences(&self) -> impl Iterator<Item = Said<'t>> {
        let runs = self.between(&[Kind::Quote, Kind::Paste, Kind::Heading]);
        runs.flat_map(move |(run, _)| {
            sentences(self.part(run)).map(move |said| self.said(self.place_of(said), said))
        })
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
        let own = if at == start { text.into() } else { (own + self.part(at..end)).into() };
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
    pub(super) fn kept(&self, range: Range<usize>) -> String {
        let ((_, open), (close, _)) = (self.marks(range.start), self.marks(range.end));
        let part = self.part(range);
        let close = if part.ends_with('\n') { close.trim_start() } else { close };
        format!("{open}{part}{close}")
    }
}

/// The scan of a message, line by line.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    found: Vec<Material>,
    /// Where the last end of each tag ends.
    ends: HashMap<&'t str, usize>,
    /// Whether words of the user came before.
    has_prose: bool,
    /// Where the user's words begin in what a client sends, and from where on nothing is certain.
    from: usize,
    doubt: Option<usize>,
    /// Where the words end that stand in the tag of a client, or the text.
    end: usize,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        let end = |(at, _): (usize, &str)| {
            let (name, tag) = tag_at(text, at)?;
            Some((name, at + tag))
        };
        let ends = text.match_indices("</").filter_map(end).collect();
        let (found, end) = (Vec::new(), text.len());
        Self { text, at: 0, found, ends, has_prose: false, from: 0, doubt: None, end }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn line(&self) -> Option<&'t str> {
        self.rest().split_inclusive('\n').next()
    }

    /// Takes what comes next up to `end` for material. A line break at its end is none of it.
    fn take(&mut self, kind: Kind, end: usize, open: impl Into<String>, close: impl Into<String>) {
        let end = end.clamp(self.at, self.text.len());
        let part = self.text.get(self.at..end).unwrap_or_default();
        let range = self.at..self.at + part.trim_end_matches(['\n', '\r']).len();
        self.found.push(Material { range, kind, open: open.into(), close: close.into() });
        self.at = end;
    }

    fn run(&mut self) {
        let head = |head: &&str| Some(self.text.rfind(head)? + head.len());
        if let Some(end) = REQUESTS.iter().find_map(head) {
            self.take(Kind::Quote, end, "", "");
            self.from = end;
        }
        let (mut block_end, mut is_patch) = (0, false);
        while let Some(line) = self.line() {
            if self.at >= block_end {
                block_end = paragraph_end(self.text, self.at).max(self.at + 1);
                let block = self.text.get(self.at..block_end).unwrap_or_default();
                is_patch = block.lines().any(|line| line.starts_with(['+', '@']));
            }
            if !self.takes_block(line) && !self.takes_line(line, is_patch) {
                self.prose(line);
            }
        }
    }

    /// What several lines are together: a fence, a tag, a comment, what is below the head of a mail.
    fn takes_block(&mut self, line: &'t str) -> bool {
        let plain = line.trim();
        let start = self.at + (line.len() - line.trim_start().len());
        if let Some((name, end)) = self.foreign_tag(start) {
            let inside = self.text.get(start..end).unwrap_or_default();
            let is_inline = !self.is_line_start(start) && !inside.contains('\n');
            let kind = match is_inline {
                true if inside.contains(['.', '!', '?', '。']) => Kind::Sentences,
                true => Kind::Name,
                false => Kind::Quote,
            };
            self.at = start;
            self.take(kind, end, format!("<{name}>\n"), format!("</{name}>"));
            return true;
        }
        let block = BLOCKS.iter().find(|(begin, _)| plain.starts_with(begin));
        let Some((begin, end)) = block else { return false };
        let inside = plain.trim_start_matches(begin.chars().next().unwrap_or_default());
        let fence = plain.get(..plain.len() - inside.len()).filter(|_| begin == end);
        let mut to = self.at + line.len();
        let is_line = !end.is_empty() && inside.contains(end);
        // Code inside of a line begins like a fence.
        if is_line && fence.is_some() && !inside.ends_with(end) {
            return false;
        }
        if !is_line {
            let is_end = |line: &&str| match fence {
                Some(fence) => {
                    line.trim().starts_with(fence)
                        && line
                            .trim()
                            .trim_start_matches(fence)
                            .trim_start_matches(end.chars().next().unwrap_or_default())
                            .is_empty()
                }
                None => !end.is_empty() && line.contains(end),
            };
            let after = self.text.get(to..).unwrap_or_default().split_inclusive('\n');
            let found = after.inspect(|line| to += line.len()).find(is_end);
            to = if found.is_some() { to } else { self.end };
        }
        let close = if *end == "" || is_line {
            String::new()
        } else {
            format!("\n{}", fence.unwrap_or(end))
        };
        self.take(Kind::Paste, to, format!("{plain}\n"), close);
        true
    }

    /// What a line is by itself: of a quotation, a comment, a log, code, data.
    fn takes_line(&mut self, line: &'t str, is_patch: bool) -> bool {
        let (end, plain) = (self.at + line.len(), line.trim());
        let item = plain.trim_start_matches(['-', '*', '•', ' ']);
        let begins =
            |of: &str, list: &'static str| { list.split(' ') }.find(|mark| of.starts_with(mark));
        if let Some(mark) = begins(item, QUOTES) {
            self.take(Kind::Quote, end, format!("{mark} "), "");
            // A quotation goes on in the next line, without its mark too.
            let goes_on =
                |line: &&str| !line.trim().is_empty() && begins(line.trim(), QUOTES).is_none();
            while let Some(line) = self.line().filter(goes_on) {
                self.take(Kind::Quote, self.at + line.len(), format!("{mark} "), "");
            }
            return true;
        }
        let mark = match begins(plain, COMMENTS) {
            _ if plain.is_empty() => return false,
            _ if line.starts_with("    ") || line.starts_with('\t') => "   ",
            Some("#") if plain.trim_start_matches('#').starts_with(' ') && !speaks(plain) => {
                self.take(Kind::Heading, end, "# ", "");
                return true;
            }
            // A line between parts of a message.
            Some(_) if !plain.contains(char::is_alphanumeric) => return false,
            Some(mark) => mark,
            None if is_patch && line.starts_with([' ', '-']) => "-",
            None if plain.starts_with('-') && !plain.starts_with("- ") => "-",
            None if is_data(plain) || is_logged(plain) => ">",
            None => return false,
        };
        self.take(Kind::Paste, end, format!("{mark} "), "");
        true
    }

    /// Words of the user, up to where somebody else speaks.
    fn prose(&mut self, line: &'t str) {
        let from = self.at;
        let start = from + (line.len() - line.trim_start().len());
        if let Some((name, end)) = self.users_tag(start) {
            let is_end = self.text.get(start..).is_some_and(|tag| tag.starts_with("</"));
            let whole = self.text.len();
            self.end = if is_end { whole } else { self.ends.get(name).copied().unwrap_or(whole) };
            self.take(Kind::Heading, end, "", "");
            self.from = if self.has_prose || is_end { self.from } else { end };
            return;
        }
        let tags = line.match_indices('<').map(|(at, _)| from + at).filter(|at| *at > start);
        let is_tag = |at: &usize| self.foreign_tag(*at).is_some() || self.users_tag(*at).is_some();
        let tag = { tags }.find(is_tag);
        let line = self.text.get(from..tag.unwrap_or(from + line.len())).unwrap_or_default();
        let plain = line.trim();
        self.at = from + line.len();
        self.has_prose |= line.contains(char::is_alphanumeric);
        if plain.starts_with(|c: char| "-*•".contains(c) || c.is_ascii_digit()) {
            self.doubt.get_or_insert(from);
        }
        if let Some(report) = report(line).or_else(|| labelled(line)) {
            let said = line.get(report.clone()).unwrap_or_default();
            let has_colon = said.trim_start().starts_with([':', '：']);
            // Quotation marks say themselves how far they go.
            let is_quoted = said.trim_start_matches([' ', ',']).starts_with(is_mark);
            if said.contains(char::is_alphanumeric) && !is_quoted {
                let end =
                    if has_colon { paragraph_end(self.text, from) } else { from + report.end };
                let lead = line.get(..report.start).unwrap_or_default().trim();
                self.at = from + report.start;
                return self.take(Kind::Sentences, end, format!("{lead}: "), "");
            }
        }
        let is_lead = plain.ends_with([':', '：']);
        let leads = leads_to_paste(plain) && (is_lead || plain.to_lowercase().contains("below"));
        if is_lead || leads {
            self.doubt.get_or_insert(self.at);
        }
        if leads || is_lead && report(line).is_some() {
            self.take_unmarked(plain);
        }
    }

    /// Takes what a line leads to, all of it where nothing marks it: it marks itself else.
    fn take_unmarked(&mut self, lead: &str) {
        let at = self.text.len() - self.rest().trim_start_matches(['\n', '\r']).len();
        let ends = std::mem::take(&mut self.ends);
        let mut probe = Self { text: self.text, at, ends, end: self.end, ..Self::new("") };
        let line = probe.line().unwrap_or_default();
        let is_marked = probe.takes_block(line) || probe.takes_line(line, false);
        self.ends = probe.ends;
        if !is_marked && !line.trim_start().starts_with(is_mark) {
            self.take(Kind::Paste, self.end, format!("{lead}\n"), "");
        }
    }

    /// Whether nothing stands before a place in its line.
    fn is_line_start(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default();
        before.rsplit('\n').next().is_some_and(|line| line.trim().is_empty())
    }

    /// The tag at a place that a client puts around the user's words, and where it ends.
    fn users_tag(&self, at: usize) -> Option<(&'t str, usize)> {
        let (name, end) = tag_at(self.text, at)?;
        let lower = name.to_ascii_lowercase();
        let is_end = self.text.get(at..).is_some_and(|tag| tag.starts_with("</"));
        let is_of_client = has(OF_CLIENTS, &lower) && (!self.has_prose || is_end);
        (has(OF_USERS, &lower) || is_of_client).then_some((name, at + end))
    }

    /// The name of the tag at a place, where it is none for the user's words, and where what is in
    /// it ends.
    fn foreign_tag(&self, at: usize) -> Option<(&'t str, usize)> {
        let (name, end) = tag_at(self.text, at)?;
        let text = self.text.get(at..)?;
        let is_formatting = has(FORMATTING, &name.to_ascii_lowercase());
        if text.starts_with("</") || is_formatting || self.users_tag(at).is_some() {
            return None;
        }
        // What is inside may close the tag too: the last end counts.
        let is_line = self.is_line_start(at);
        let last = self.ends.get(name).copied().filter(|last| *last > at);
        let last = last.or_else(|| is_line.then_some(self.text.len()))?;
        // `Wrap it in <sum> tags` names a tag.
        let behind = text.get(end..).and_then(|behind| behind.strip_prefix(' '));
        let is_named = behind.is_some_and(|behind| behind.starts_with(char::is_lowercase))
            && !is_line
            && last > paragraph_end(self.text, at);
        (!is_named).then_some((name, last))
    }
}

/// The name of the tag at a place, and its length.
fn tag_at(text: &str, at: usize) -> Option<(&str, usize)> {
    let tag = text.get(at..)?;
    let rest = tag.strip_prefix('<')?;
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    let name = rest.get(..rest.find(|c| !is_name(c))?)?;
    let after = rest.get(name.len()..)?;
    let length = tag.bytes().take(LONGEST_TAG).position(|byte| byte == b'>')?;
    let is_tag =
        name.starts_with(char::is_alphabetic) && after.starts_with(['>', ' ', '\n', '\t', '/']);
    is_tag.then_some((name, length + 1))
}

/// Whether a list of words has this one.
fn has(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split_whitespace().any(|of| of == word)
}

/// Whether a heading reads like a rule, or like what takes one back.
fn speaks(heading: &str) -> bool {
    let said = heading.trim_start_matches(['#', ' ']);
    rule::is_rule(said) || correction(said, false).is_some() || says_instead(said)
}

/// Where the paragraph ends in which a place is.
fn paragraph_end(text: &str, from: usize) -> usize {
    let lines = text.get(from..).unwrap_or_default().split_inclusive('\n');
    let lines = lines.take_while(|line| !line.trim().is_empty());
    from + lines.map(str::len).sum::<usize>()
}

/// Whether a line reads like JSON, or sets a value.
fn is_data(line: &str) -> bool {
    let second = line.chars().nth(1);
    let is_set = |(name, _): (&str, &str)| {
        !name.trim_end().is_empty() && !name.trim_end().contains(char::is_whitespace)
    };
    match line.chars().next() {
        Some('{' | '}' | ']') => true,
        Some('[') => second.is_none_or(|next| "{[\"]".contains(next)),
        Some('"') => line.contains("\":"),
        _ => line.split_once('=').is_some_and(is_set),
    }
}

/// Whether a line is one of a log or of a listing, or has the label of a program or of a speaker.
fn is_logged(line: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|of| of.is_ascii_digit());
    let is_stamp = |word: &str| {
        let word = word.trim_matches(|c: char| "[](){}<>|:,;".contains(c));
        let parts: Vec<&str> = word.split(['-', ':', '/', 'T']).collect();
        let is_in_brackets = parts.len() > 1 && line.starts_with('[');
        let is_long = parts.len() > 2 || is_in_brackets;
        has(LEVELS, word) || is_long && parts.iter().take(3).all(|part| is_digits(part))
    };
    let first = line.split_whitespace().next().unwrap_or_default();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = number.len() < line.len()
        && (number.starts_with(['\t', ':']) || number.trim_start().starts_with(['|', '→', '│']));
    // `a.md-12-`, `sql>`
    let is_found = first.contains(['.', '/']) && first.split(['-', ':']).skip(1).any(is_digits)
        || first.len() > 1 && first.ends_with('>') && !first.starts_with('<');
    if is_numbered || is_found || line.split_whitespace().take(4).any(is_stamp) {
        return true;
    }
    let Some((label, _)) = line.split_once([':', '：']).filter(|(_, said)| !said.is_empty())
    else {
        return false;
    };
    let label = label.to_lowercase();
    let last = label.rsplit(' ').next().unwrap_or_default();
    let last = last.trim_matches(['[', ']']);
    ["error", "exception", "warning", "err!", "failed"].iter().any(|end| last.ends_with(end))
        || !label.contains(' ') && (has(LABELS, last) || label.contains(['/', '.']))
}

/// What of a line somebody else says: `the README says …`, `my colleague wrote: …`.
fn report(line: &str) -> Option<Range<usize>> {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '’');
    let end_from = |from: usize| {
        let rest = line.get(from..).unwrap_or_default();
        let ends = [". ", "! ", "? ", "。"].iter().filter_map(|end| rest.find(end));
        ends.min().map_or(line.len(), |end| from + end + 1)
    };
    let plain = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    let head: String = plain.chars().take(16).flat_map(char::to_lowercase).collect();
    if ACCORDING.iter().any(|lead| head.starts_with(lead)) {
        let start = line.len() - plain.len();
        return Some(start..end_from(start));
    }
    // The first word of the sentence, and the last two.
    let (mut first, mut last) = (String::new(), [String::new(), String::new()]);
    let mut at = 0;
    while let Some(rest) = line.get(at..).filter(|rest| !rest.is_empty()) {
        let end = at + rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = line.get(at..end).unwrap_or_default().to_lowercase();
        let after = line.get(end..).unwrap_or_default();
        let has_colon = after.trim_start().starts_with([':', '：']);
        let is_said = has(SPEECH, &word);
        let is_shown = has_colon
            && (has(SHOWING, &word) || UNSPACED.split(' ').any(|verb| word.ends_with(verb)));
        let is_plural = has(PLURALS, &word) && has(ARTICLES, &last[0]);
        // What the user said, and what somebody may say, is the user's.
        let is_own =
            last.iter().any(|of| has(SELVES, of)) || word != "told" && has(PASSIVE, &last[1]);
        if is_shown || (is_said || is_plural) && !is_own && (has_colon || !has(CONDITIONS, &first))
        {
            return Some(end..if has_colon { line.len() } else { end_from(end) });
        }
        if after.starts_with(['.', '!', '?']) {
            (first, last) = Default::default();
        } else if !word.is_empty() {
            first = if first.is_empty() { word.clone() } else { first };
            last = [std::mem::take(&mut last[1]), word];
        }
        at = end + after.chars().next().map_or(0, char::len_utf8);
    }
    None
}

/// What stands behind the label of something else in a line: `the wiki: …`.
fn labelled(line: &str) -> Option<Range<usize>> {
    let colon = line.find(": ").or_else(|| line.find('：'))?;
    let label = line.get(..colon)?;
    let is_label = !label.contains("**") && leads_to_paste(&format!("{label}:"));
    is_label.then_some(colon..line.len())
}

/// Whether a line leads to what is pasted below it: `here is what Bob sent:`, `the log:`.
fn leads_to_paste(line: &str) -> bool {
    let lower = line.rsplit(". ").next().unwrap_or(line).to_lowercase();
    let words = words(&lower);
    let speaks_of = |list: &str| words.iter().any(|word| has(list, word));
    let last = words.last().copied().unwrap_or_default();
    let is_noun = words.len() == 1 || speaks_of(ARTICLES);
    let is_pasted = is_noun && (has(PASTED, last) || has(LABELS, last));
    let points = line.ends_with([':', '：']) && speaks_of(POINTING) && speaks_of(HANDLING);
    let is_scope = words.first().is_some_and(|first| has(SCOPES, first));
    let presents = PRESENTING.iter().any(|start| lower.starts_with(start));
    !speaks_of(WANTED) && !is_scope && (is_pasted || points || presents)
}

#[cfg(test)]
#[path = "own_words_tests.rs"]
mod tests;
