//! The scan of a user's message for what stands in it that is not the user's.

use std::{collections::HashMap, ops::Range};

use super::{
    closing::{Log, closing},
    lead::{labelled, leads_to_paste, may_ask, may_lead, points_below, presents},
    line_kind::{
        Begin, begin, chat_turn, columns, delimiter, has, is_authored, is_block_of_yaml,
        is_chat_head, is_data, is_logged, is_mail_head, is_output, is_prose, is_ruled, is_shell,
        is_subtitle, report,
    },
    material::{Kind, Material},
    page::{is_page_head, page},
    quotations::is_mark,
};
use crate::steps::sentence::{
    correction::{correction, says_instead},
    lower, rule,
};
use crate::text::{
    quote::{DOCUMENT_TEXT, PASTED_LOG, PASTED_TEXT},
    words::material::{
        COMMENTS, FORMATTING, OF_CLIENTS, OF_USERS, PROSES, QUOTES, REQUESTS, SUMMARY_HEADS,
    },
};

/// Stands for the end of output: the prose behind it is the user's.
const PROSE: &str = "\n\n";

/// What begins and ends several lines that are not the user's. Without an end all that follows is of
/// somebody else.
const BLOCKS: [(&str, &str); 35] = [
    ("```", "```"),
    ("~~~", "~~~"),
    ("\"\"\"", "\"\"\""),
    ("'''", "'''"),
    (":::", ":::"),
    ("/*", "*/"),
    ("<!--", "-->"),
    ("{-", "-}"),
    ("[quote", "[/quote]"),
    ("\\begin{", "\\end{"),
    ("-----BEGIN", "-----END"),
    ("--- Content", "--- End"),
    ("<<<<<<<", ">>>>>>>"),
    ("-----Original", ""),
    ("---------- Forwarded", ""),
    ("Begin forwarded message", ""),
    ("Traceback (most recent", PROSE),
    ("diff --git", PROSE),
    ("HTTP/1", ""),
    ("BEGIN:", "END:"),
    ("< HTTP/", ""),
    ("<|", ""),
    ("[INST]", ""),
    ("[SYSTEM", ""),
    ("[Attachment", ""),
    ("-----8<", ""),
    ("thread '", PROSE),
    ("-- 8<", ">8"),
    ("#+BEGIN", "#+END"),
    ("BEGIN ", "END "),
    ("[TOOL", "[/TOOL"),
    ("[Pasted text", ""),
    (".. ", ""),
    ("Web search results", ""),
    ("# aider chat started", ""),
];

/// After so much material, tags inside of lines are looked at no more.
const MOST_TAGS: usize = 500;

/// A longer tag is none.
const LONGEST_TAG: usize = 2_000;

/// The scan of a message, line by line.
pub(super) struct Scan<'t> {
    text: &'t str,
    at: usize,
    pub(super) found: Vec<Material>,
    /// Where the last end of each tag ends.
    ends: HashMap<&'t str, usize>,
    /// Whether words of the user came before.
    has_prose: bool,
    /// Where the user's words begin in what a client sends, and from where on nothing is certain.
    pub(super) from: usize,
    pub(super) doubt: Option<usize>,
    /// Where the words end that stand in the tag of a client, or the text.
    end: usize,
    /// Where somebody speaks last in a log of a chat: the user, and another.
    turns: [usize; 2],
    /// Where the second speaks in it.
    pub(super) second: Option<usize>,
    /// Where a text begins that the user says is pasted.
    led: Option<usize>,
    /// Whether the text is a summary: what only may lead to a paste is one of its headings.
    pub(super) is_summary: bool,
    /// Where a page of the web stands that nothing leads to.
    page: Option<Range<usize>>,
    /// Up to here a block may close and open again in what is pasted.
    reopens: usize,
    /// Whether a heading came before.
    has_heading: bool,
}

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let end = |(at, _): (usize, &str)| {
            let (name, tag) = tag_at(text, at)?;
            Some((name, at + tag))
        };
        let ends = text.match_indices("</").filter_map(end).collect();
        let (mut turns, mut at, mut first, mut second) = ([0; 2], 0, 0, None);
        for line in text.split_inclusive('\n') {
            let turn = chat_turn(line);
            for (last, bit) in turns.iter_mut().zip([1, 2]) {
                *last = if turn & bit == 0 { *last } else { at };
            }
            if first != 0 && turn != 0 && (turn != first || turn == 3) {
                second.get_or_insert(at);
            }
            first = if first == 0 { turn } else { first };
            at += line.len();
        }
        let (found, end) = (Vec::new(), text.len());
        let (at, has_prose, from, doubt, led, reopens) = (0, false, 0, None, None, 0);
        Self {
            text,
            at,
            found,
            ends,
            has_prose,
            from,
            doubt,
            end,
            turns,
            second,
            led,
            page: page(text),
            is_summary: false,
            reopens,
            has_heading: false,
        }
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
        // Nothing of what is pasted is a sentence of the user.
        let kind = if self.at < self.reopens { Kind::Paste } else { kind };
        let (open, close) = (open.into(), close.into());
        self.found.push(Material { range, kind, open, close, label: None });
        self.at = end;
    }

    /// Takes what has no end up to that of the text, but for the user's own words behind it.
    fn take_rest(&mut self, kind: Kind, open: impl Into<String>, close: impl Into<String>) {
        let rest = self.text.get(self.at..self.end).unwrap_or_default();
        let is_log = rest.lines().next().is_some_and(|line| self.begins_log(line));
        let log = is_log.then_some(if self.has_prose { Log::Led } else { Log::First });
        let own = closing(rest, log).filter(|_| !self.is_summary).map(|from| self.at + from);
        self.take(kind, own.unwrap_or(self.end), open, close);
        if own.is_some() {
            self.found.last_mut().into_iter().for_each(|of| of.label = Some(PASTED_TEXT));
        }
        self.take_behind();
    }

    /// Whether a heading is one of a summary, or the first of a text that the user's last words speak of.
    fn begins_document(&mut self, heading: &str) -> bool {
        let is_first = !std::mem::replace(&mut self.has_heading, true);
        let name = lower(heading.trim_start_matches(|c: char| !c.is_alphabetic()));
        let rest = || self.text.get(self.at..self.end).unwrap_or_default();
        !self.is_summary
            && (SUMMARY_HEADS.contains(&name.trim_end_matches([':', '#', ' ']))
                || is_first && closing(rest(), None).is_some())
    }

    /// Takes the user's own words behind what is pasted without an end: they are no rule.
    fn take_behind(&mut self) {
        if self.at < self.end {
            self.take(Kind::Sentences, self.end, "", "");
        }
    }

    pub(super) fn run(&mut self) {
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
            if !self.takes_block(line) && !self.takes_page(line) && !self.takes_line(line, is_patch)
            {
                self.prose(line);
            }
        }
    }

    /// What several lines are together: a fence, a tag, a comment, what is below the head of a mail.
    fn takes_block(&mut self, line: &'t str) -> bool {
        let plain = line.trim();
        let start = self.at + (line.len() - line.trim_start().len());
        if self.begins_log(line) {
            let at = self.found.len();
            self.take_rest(Kind::Paste, format!("{}\n", PASTED_LOG[0]), "");
            self.found.get_mut(at).into_iter().for_each(|log| log.label = Some(PASTED_LOG));
            return true;
        }
        let marked = [PASTED_LOG, PASTED_TEXT, DOCUMENT_TEXT];
        if let Some([begin, end]) = marked.into_iter().find(|of| of[0] == plain) {
            let rest = self.text.get(self.at..self.end).unwrap_or_default();
            let to = rest.rfind(end).map_or(self.end, |at| self.at + at + end.len());
            self.take(Kind::Paste, to, format!("{begin}\n"), format!("\n{end}"));
            self.take_behind();
            return true;
        }
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
        let next = self.text.get(self.at + line.len()..).and_then(|rest| rest.lines().next());
        let next = next.unwrap_or_default();
        if is_mail_head(plain) && is_mail_head(next) {
            self.take_rest(Kind::Paste, format!("{plain}\n"), "");
            return true;
        }
        if is_page_head(plain) && !next.trim_start().starts_with(['|', '-']) {
            self.take_rest(Kind::Paste, format!("{plain}\n"), "");
            return true;
        }
        let is_table = columns(line).is_some_and(|of| columns(next) == Some(of)) || is_ruled(next);
        // What a document says of itself, before its text.
        if plain == "---"
            && next.contains(": ")
            && self.text.get(..start).unwrap_or_default().trim().is_empty()
        {
            self.take_rest(Kind::Paste, "---\n", "");
            return true;
        }
        let kind = match (begin(plain), begin(next.trim())) {
            (Some(Begin::Label(name)), Some(Begin::Label(other))) if name != other => {
                Some(Kind::Sentences)
            }
            (Some(of), Some(other)) if of == other => Some(Kind::Paste),
            _ => None,
        };
        if let Some(kind) = kind {
            self.take(kind, paragraph_end(self.text, self.at), "> ", "");
            self.doubt.get_or_insert(self.at);
            return true;
        }
        let is_of_block = is_block_of_yaml(plain, next) || is_subtitle(plain);
        if is_shell(plain) || is_table || is_of_block {
            self.take(Kind::Paste, paragraph_end(self.text, self.at), "> ", "");
            self.doubt.get_or_insert(self.at);
            return true;
        }
        if let Some(of) = delimiter(plain) {
            let after = self.text.get(self.at + line.len()..).unwrap_or_default();
            let is_end = |line: &&str| {
                delimiter(line.trim()) == Some(of) && line.to_lowercase().contains("end")
            };
            let mut to = self.at + line.len();
            let lines = after.split_inclusive('\n').inspect(|line| to += line.len());
            if { lines }.any(|line| is_end(&line)) {
                self.take(Kind::Paste, to, format!("{plain}\n"), "");
            } else {
                self.take_rest(Kind::Paste, format!("{plain}\n"), "");
            }
            self.may_reopen(|line| delimiter(line) == Some(of));
            return true;
        }
        // `note = """`
        let fence =
            ["\"\"\"", "'''"].iter().find(|fence| plain.ends_with(*fence) && is_data(plain));
        if let Some(fence) = fence {
            let after = self.at + line.len();
            let rest = self.text.get(after..).unwrap_or_default();
            let to = rest.find(*fence).map_or(self.end, |at| after + at + fence.len());
            self.take(Kind::Paste, to, format!("{plain}\n"), *fence);
            return true;
        }
        let block = BLOCKS.iter().find(|(begin, _)| plain.starts_with(begin));
        block.is_some_and(|block| self.takes_fence(line, block))
    }

    /// What stands between a mark and its end.
    fn takes_fence(&mut self, line: &'t str, (begin, end): &(&str, &str)) -> bool {
        let plain = line.trim();
        let inside = plain.trim_start_matches(begin.chars().next().unwrap_or_default());
        let fence = plain.get(..plain.len() - inside.len()).filter(|_| begin == end);
        let mut to = self.at + line.len();
        let is_line = !end.is_empty() && inside.contains(end);
        let mut has_end = true;
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
            has_end = found.is_some() || *end == PROSE;
            to = if found.is_none() && *end == PROSE { self.output_end() } else { to };
        }
        let close = if end.trim().is_empty() || is_line {
            String::new()
        } else {
            format!("\n{}", fence.unwrap_or(end))
        };
        if !has_end {
            self.take_rest(Kind::Paste, format!("{plain}\n"), close);
            return true;
        }
        // Between blocks of code people say more than between parts of a text.
        let is_prose = fence.is_none() || has(&PROSES, &inside.trim().to_lowercase());
        let may_reopen = !end.trim().is_empty() && (is_prose || self.led == Some(self.at));
        self.take(Kind::Paste, to, format!("{plain}\n"), close);
        if may_reopen {
            self.may_reopen(|line| line.starts_with(begin) || line.starts_with(end));
        }
        true
    }

    /// What is above the last line of a page of the web. The prose below it is the user's, and no rule.
    fn takes_page(&mut self, line: &str) -> bool {
        let is_in = |page: &mut Range<usize>| page.start <= self.at && self.at < page.end;
        let page = self.page.take_if(|page| !line.trim().is_empty() && is_in(page));
        let Some(page) = page.filter(|_| !self.is_summary) else { return false };
        self.take(Kind::Paste, page.end, "> ", "");
        self.take_behind();
        true
    }

    /// Notes how far a block may go that ended here: what is pasted may hold its marks.
    fn may_reopen(&mut self, is_mark: impl Fn(&str) -> bool) {
        let mut at = self.at;
        // The first of the kind has found the last.
        let rest = if at < self.reopens { "" } else { self.rest() };
        for line in rest.split_inclusive('\n') {
            self.reopens = if is_mark(line.trim()) { at } else { self.reopens };
            at += line.len();
        }
    }

    /// Whether a log of a chat begins with a line: another speaks in it, too.
    fn begins_log(&self, line: &str) -> bool {
        let turn = chat_turn(line);
        let later = { self.turns.iter().zip([1, 2]) }
            .map(|(last, bit)| if *last > self.at { bit } else { 0 });
        turn > 0 && turn | later.sum::<u8>() == 3
    }

    /// What a line is by itself: of a quotation, a comment, a log, code, data.
    fn takes_line(&mut self, line: &'t str, is_patch: bool) -> bool {
        let (end, plain) = (self.at + line.len(), line.trim());
        let item = plain.trim_start_matches(['-', '*', '•', ' ']);
        let begins = |of: &str, list: &[&'static str]| {
            list.iter().copied().find(|mark| of.starts_with(mark))
        };
        if let Some(mark) = begins(item, &QUOTES) {
            self.take(Kind::Quote, end, format!("{mark} "), "");
            // A quotation goes on in the next line, without its mark too.
            let goes_on =
                |line: &&str| !line.trim().is_empty() && begins(line.trim(), &QUOTES).is_none();
            while let Some(line) = self.line().filter(goes_on) {
                self.take(Kind::Quote, self.at + line.len(), format!("{mark} "), "");
            }
            return true;
        }
        if is_chat_head(plain) {
            self.take_rest(Kind::Quote, format!("{plain}\n"), "");
            return true;
        }
        let mark = match begins(plain, &COMMENTS) {
            // `$5 a run`, `%3`, `--force`
            Some("$" | "%") if !plain.get(1..).is_some_and(|rest| rest.starts_with(' ')) => {
                return false;
            }
            _ if plain.is_empty() => return false,
            _ if line.starts_with("    ") || line.starts_with('\t') => "   ",
            Some("#") if plain.contains(char::is_alphanumeric) && self.begins_document(plain) => {
                self.take_rest(Kind::Paste, format!("{plain}\n"), "");
                return true;
            }
            Some("#") if plain.contains(char::is_alphanumeric) && !speaks(plain) => {
                self.take(Kind::Heading, end, "# ", "");
                let name = plain.trim_start_matches(['#', ' ']);
                if name.contains('.') && !name.ends_with('.') && !name.contains(' ') {
                    self.take_unmarked(plain, Kind::Sentences);
                }
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
        // A line by itself may be what the user says with such a beginning.
        let next = self.text.get(end..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let is_before = self.found.last().is_some_and(|of| of.range.end + 2 >= self.at);
        let is_lone = mark == ">" && !is_before && !is_logged(next.trim()) && !is_data(next.trim());
        let kind = if is_lone { Kind::Sentences } else { Kind::Paste };
        self.take(kind, end, format!("{mark} "), "");
        true
    }

    /// Words of the user, up to where somebody else speaks.
    fn prose(&mut self, line: &'t str) {
        let from = self.at;
        let start = from + (line.len() - line.trim_start().len());
        let of_user = self.users_tag(start).filter(|_| from >= self.reopens);
        if let Some((name, end)) = of_user {
            let is_end = self.text.get(start..).is_some_and(|tag| tag.starts_with("</"));
            let whole = self.text.len();
            self.end = if is_end { whole } else { self.ends.get(name).copied().unwrap_or(whole) };
            self.take(Kind::Heading, end, "", "");
            self.from = if self.has_prose || is_end { self.from } else { end };
            return;
        }
        let tags = line.match_indices('<').map(|(at, _)| from + at).filter(|at| *at > start);
        let is_tag = |at: &usize| self.foreign_tag(*at).is_some() || self.users_tag(*at).is_some();
        let more = MOST_TAGS.saturating_sub(self.found.len());
        let tag = { tags }.take(more).find(is_tag);
        let line = self.text.get(from..tag.unwrap_or(from + line.len())).unwrap_or_default();
        let plain = line.trim();
        self.at = from + line.len();
        if from < self.reopens && !plain.is_empty() {
            self.at = from;
            return self.take(Kind::Paste, from + line.len(), "> ", "");
        }
        self.has_prose |= line.contains(char::is_alphanumeric);
        if plain.starts_with(|c: char| "-*•".contains(c) || c.is_ascii_digit()) {
            self.doubt.get_or_insert(from);
        }
        let is_lead = plain.ends_with([':', '：']);
        let reports = report(line);
        if is_lead && reports.is_some() {
            self.doubt.get_or_insert(self.at);
            return self.take_unmarked(plain, Kind::Paste);
        }
        if let Some(report) = reports.or_else(|| labelled(line)) {
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
        let is_apart = || self.rest().lines().next().is_some_and(|line| line.trim().is_empty());
        let leads = leads_to_paste(plain) && (is_lead || points_below(plain))
            || !self.is_summary && is_apart() && presents(plain)
            || plain.trim_end_matches(['.', ':']).ends_with("as follows");
        if is_lead || leads {
            self.doubt.get_or_insert(self.at);
        }
        if leads {
            self.take_unmarked(plain, Kind::Paste);
        } else if !self.is_summary
            && (may_lead(plain, self.rest().trim_start()) || may_ask(plain, self.rest()))
        {
            self.take_unmarked(plain, Kind::Sentences);
        }
    }

    /// Takes what a line leads to, all of it where nothing marks it: it marks itself else.
    fn take_unmarked(&mut self, lead: &str, kind: Kind) {
        let at = self.text.len() - self.rest().trim_start_matches(['\n', '\r']).len();
        self.led = Some(at).filter(|_| kind == Kind::Paste).or(self.led);
        let ends = std::mem::take(&mut self.ends);
        let (text, end, turns) = (self.text, self.end, self.turns);
        let mut probe = Self { text, at, ends, end, turns, ..Self::new("") };
        let line = probe.line().unwrap_or_default();
        let takes = probe.takes_block(line) || probe.takes_line(line, false);
        let is_marked = takes && probe.found.last().is_none_or(|of| of.kind != Kind::Heading);
        self.ends = probe.ends;
        if !is_marked && !line.trim_start().starts_with(is_mark) {
            let block = self.text.get(at..paragraph_end(self.text, at)).unwrap_or_default();
            let is_printed = !is_authored(lead) && is_output(block);
            if is_printed {
                self.take(kind, self.output_end(), format!("{lead}\n"), "");
            } else {
                self.take_rest(kind, format!("{lead}\n"), "");
            }
        }
    }

    /// Where the output ends that begins here: before the last paragraphs of prose, or before one that
    /// leads to more of it.
    fn output_end(&self) -> usize {
        let (mut at, mut end) = (self.at, None);
        let (mut is_begun, mut is_begin) = (false, false);
        let rest = self.text.get(self.at..self.end).unwrap_or_default();
        for line in rest.split_inclusive('\n') {
            if is_begun && is_begin && !line.trim().is_empty() {
                end = is_prose(line).then(|| end.unwrap_or(at));
                if end.is_some() && line.trim_end().ends_with([':', '：']) {
                    break;
                }
            }
            is_begin = line.trim().is_empty();
            is_begun |= !is_begin;
            at += line.len();
        }
        end.unwrap_or(self.end)
    }

    /// Whether nothing stands before a place in its line.
    fn is_line_start(&self, at: usize) -> bool {
        let before = self.text.get(..at).unwrap_or_default();
        before.trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|c| c == '\n')
    }

    /// The tag at a place that a client puts around the user's words, and where it ends.
    fn users_tag(&self, at: usize) -> Option<(&'t str, usize)> {
        let (name, end) = tag_at(self.text, at)?;
        let lower = name.to_ascii_lowercase();
        let is_end = self.text.get(at..).is_some_and(|tag| tag.starts_with("</"));
        let is_of_client = has(&OF_CLIENTS, &lower) && (!self.has_prose || is_end);
        (has(&OF_USERS, &lower) || is_of_client).then_some((name, at + end))
    }

    /// The name of the tag at a place, where it is none for the user's words, and where what is in
    /// it ends.
    fn foreign_tag(&self, at: usize) -> Option<(&'t str, usize)> {
        let (name, end) = tag_at(self.text, at)?;
        let text = self.text.get(at..)?;
        let is_formatting = has(&FORMATTING, &name.to_ascii_lowercase());
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
