//! Where rules find secrets in a text.

use std::ops::Range;

use regex_automata::{Anchored, Input};

use super::{
    near,
    redactor::{MARK, Replacement},
    rules::{RedactionRules, Rule, Subset, is_of_name, plain_name},
    structure::Structure,
    view::View,
};

impl RedactionRules {
    /// The first rule by which what a member or a column of this name holds is a secret.
    pub(super) fn named(&self, name: &str, held: &str) -> Option<usize> {
        let plain = plain_name(name);
        let is_secret = |rule: &Rule| rule.is_named(name, &plain) && rule.is_value(held, true);
        self.rules.iter().position(is_secret)
    }

    /// The secrets that rules find in a text, in order, each with its rule. They do not overlap.
    pub(super) fn matches(&self, view: &View<'_>) -> Vec<(Range<usize>, usize)> {
        let is_asked = |set: &&Subset| {
            set.keywords.as_ref().is_none_or(|keywords| keywords.is_match(&view.text))
        };
        let sets = self.sets.iter().filter(is_asked);
        apart(sets.flat_map(|set| self.matches_of(view, set)).collect())
    }

    /// The runs of base64 that stand for a text with a token or a private key, each with its rule.
    pub(super) fn encoded(&self, text: &str) -> Vec<(Range<usize>, usize)> {
        let held = self.reading.encoded(text).into_iter().filter_map(|(range, held)| {
            let view = View::of(&held);
            let mut found = self.sets.iter().flat_map(|set| self.matches_of(&view, set));
            let is_of_issuer =
                |rule: &Rule| rule.is_token || matches!(rule.structure, Some(Structure::KeyBegin));
            let first = found.find(|(_, rule)| self.rules.get(*rule).is_some_and(is_of_issuer));
            Some((range, first?.1))
        });
        held.collect()
    }

    /// The tokens that the end of a line cuts in two; `whole` was found in the lines by themselves.
    pub(super) fn wrapped(
        &self,
        view: &View<'_>,
        whole: &[Range<usize>],
    ) -> Vec<(Range<usize>, usize)> {
        let sets = self.sets.iter().filter(|set| set.is_of_tokens);
        let mut found = apart(sets.flat_map(|set| self.matches_of(view, set)).collect());
        found.retain(|(of, _)| {
            let there = view.range(of.clone());
            let mut inside = whole.iter().filter(|of| of.start < there.end && there.start < of.end);
            let goes_on = |first: &Range<usize>| {
                // What follows a whole token is a part of it where it is no word.
                let tail = view.text.get(of.start + first.len()..of.end).unwrap_or_default();
                first.start == there.start && first.end < there.end && is_mixed(tail)
            };
            match inside.next() {
                Some(first) => goes_on(first) && inside.next().is_none(),
                None => true,
            }
        });
        found
    }

    /// Those of rules that look at how strings of JSON stand beside each other.
    pub(super) fn written_matches(&self, text: &str) -> Vec<(Range<usize>, usize)> {
        apart(self.matches_of(&View::of(text), &self.written))
    }

    fn matches_of(&self, view: &View<'_>, set: &Subset) -> Vec<(Range<usize>, usize)> {
        let mut found = Vec::new();
        // What stands behind a secret is looked at as if it began there: a placeholder will.
        let (mut begin, mut from) = (0, 0);
        while let Some(rest) = view.text.get(begin..).filter(|rest| from <= rest.len()) {
            let Some(whole) = set.regex.search(&Input::new(rest).range(from..)) else { break };
            // What is no secret by one rule may be one by another.
            let numbers = set.numbers.get(whole.pattern().as_usize()..).unwrap_or_default();
            let mut matches = numbers.iter().filter_map(|number| {
                let rule = self.rules.get(*number)?;
                let regex = rule.expression.regex()?;
                let input = Input::new(rest).range(whole.start()..).anchored(Anchored::Yes);
                let whole = regex.search(&input)?;
                let mut captures = regex.create_captures();
                regex.search_captures(&input.range(whole.range()), &mut captures);
                let group = match rule.group {
                    Some(group) => captures.get_group(group),
                    None => (1..captures.group_len()).find_map(|group| captures.get_group(group)),
                };
                let is_whole = rule.is_token || rule.structure.is_some() || group.is_none();
                let span = group.unwrap_or_else(|| whole.span()).range();
                let span = if is_whole { span } else { without_rest(rest, span) };
                Some((*number, rule, whole.range(), span))
            });
            let mut first = None;
            let here = |of: &Range<usize>| begin + of.start..begin + of.end;
            let secret = matches.find(|(number, rule, whole, span)| {
                let skips = rule.names.is_empty() && rule.structure.is_none();
                first.get_or_insert((skips, span.start));
                let Some(structure) = rule.structure else {
                    return self.is_secret(view, rule, begin, (whole, span));
                };
                let held = self.held(structure, view, (here(whole), here(span)), *number);
                let holds = !held.is_empty();
                found.extend(held);
                holds
            });
            from = next_char(rest, whole.start());
            let secret = secret.filter(|(_, rule, ..)| rule.structure.is_none());
            if let Some((number, .., span)) = secret {
                found.push((here(&span), number));
                (begin, from) = (begin + span.end, 0);
            } else {
                let inside = first.filter(|(skips, _)| *skips);
                from = from.max(inside.map_or(0, |(_, start)| start));
            }
        }
        found
    }

    /// Whether what a rule matched and the part that it means, in what stands from `begin` on, is a
    /// secret.
    fn is_secret(
        &self,
        view: &View<'_>,
        rule: &Rule,
        begin: usize,
        (whole, span): (&Range<usize>, &Range<usize>),
    ) -> bool {
        let rest = view.after(begin);
        let secret = rest.get(span.clone()).unwrap_or_default();
        let is_quoted = rest.get(..span.start).is_some_and(is_in_quotes);
        // A name may be the end of a longer one.
        let name = rest.get(..whole.start).filter(|_| !rule.names.is_empty());
        let name =
            name.map_or(0, |before| before.len() - before.trim_end_matches(is_of_name).len());
        let around = rest.get(whole.start - name..whole.end).unwrap_or_default();
        // What Helm writes down to see a change is none, nor a part of the name of a resource.
        let before = rest.get(..whole.start - name).unwrap_or_default();
        // A type whose name says that it holds one: `type Secret = Uint8Array & …`.
        let is_type = before.ends_with("type ")
            && !is_quoted
            && rest.get(..span.start).is_some_and(|before| before.ends_with("= "));
        let is_named =
            before.ends_with("checksum/") || !rule.is_token && (is_in_arn(before) || is_type);
        // What repeats the name of its user stands there in any case: `guest:guest`.
        let user = rest.get(whole.start..span.start).unwrap_or_default();
        let user = words(user).rfind(|word| !word.is_empty());
        let is_password = rule.id.contains("password");
        let is_word = is_password && is_word_before(near::around(rest, span).0, secret);
        let is_user = !rule.is_token && (user == Some(secret) || is_word);
        let of = begin + span.start..begin + span.end;
        let is_called = !is_quoted && !rule.is_token && is_applied(secret, view.after(of.end));
        let is_login = || is_login(before, view.after(of.end));
        let is_ordinary = is_called || is_named || is_user || rule.id == "email" && is_login();
        let is_new = !secret.is_empty() && !around.contains(MARK) && !is_ordinary;
        let is_apart = !rule.is_token || self.reading.is_apart(view, &of, begin);
        is_new && is_apart && rule.takes(rest, around, secret, is_quoted)
    }
}

/// What was found, in order, and one where several overlap: nothing is left of what reaches behind
/// another secret.
fn apart(mut found: Vec<(Range<usize>, usize)>) -> Vec<(Range<usize>, usize)> {
    found.sort_by_key(|(range, rule)| (range.start, usize::MAX - range.end, *rule));
    found.dedup_by(|(next, _), (range, _)| {
        let overlaps = next.start < range.end;
        range.end = if overlaps { range.end.max(next.end) } else { range.end };
        overlaps
    });
    found
}

/// Whether letters are those of a token: with digits, or with capitals behind small ones.
fn is_mixed(tail: &str) -> bool {
    let has = |is: fn(&u8) -> bool| tail.bytes().any(|byte| is(&byte));
    let has_capital = tail.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    let has_capital = has_capital.contains(|c: char| c.is_ascii_uppercase());
    tail.len() >= 4 && has(u8::is_ascii_alphabetic) && (has(u8::is_ascii_digit) || has_capital)
}

/// Whether a range shares nothing with replacements, which are in order.
pub(super) fn is_free(found: &[Replacement], of: &Range<usize>) -> bool {
    let next = found.partition_point(|(range, _)| range.end <= of.start);
    found.get(next).is_none_or(|(range, _)| of.end <= range.start)
}

/// Whether the word that this ends within is a resource of AWS, or the type of one:
/// `arn:aws:secretsmanager:…:secret:`, `AWS::SecretsManager::Secret`.
pub(super) fn is_in_arn(before: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || "\"'`,=(<".contains(c)).next();
    word.is_some_and(|word| word.starts_with("arn:aws") || word.starts_with("AWS::"))
}

/// Whether what stands between these is who logs in at a host, and no address of mail: `https://lena@…`.
/// A name before a password may be one: `smtp://lena@a.example:tides@b.example`.
fn is_login(before: &str, behind: &str) -> bool {
    let authority = behind.split(['/', '?', '#', '"', '\'', ' ', '\n']).next().unwrap_or_default();
    is_in_authority(before) && !authority.contains('@')
}

/// Whether what follows stands in the part of an address that names its host: `https://ada:…`.
fn is_in_authority(before: &str) -> bool {
    let word = before.rsplit(|c: char| c.is_whitespace() || "\"'`<>(,".contains(c)).next();
    let authority = word.and_then(|word| word.rsplit_once("://"));
    authority.is_some_and(|(_, begin)| !begin.contains(['/', '?', '#', ';', '&', '=']))
}

/// Whether a secret is a word in small letters that stands before any name of a password:
/// `Username=app;Password=app`.
fn is_word_before(before: &str, secret: &str) -> bool {
    let before = before.to_ascii_lowercase();
    let user = before.split("pass").next().unwrap_or_default();
    secret.bytes().all(|byte| byte.is_ascii_lowercase()) && words(user).any(|word| word == secret)
}

/// A value without what follows it: the parameters of `?password=tides&lang=de`, and the host of
/// `https://token:tides@a.example`. A value that is no parameter itself keeps all: `&x=` may be a part
/// of a password.
fn without_rest(text: &str, of: Range<usize>) -> Range<usize> {
    let value = text.get(of.clone()).unwrap_or_default();
    let authority = value.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rfind('@').filter(|_| {
        let (before, behind) = (text.get(..of.start), text.get(of.end..));
        before.is_some_and(is_in_authority) && !behind.is_some_and(|rest| rest.starts_with('@'))
    });
    if let Some(host) = host.filter(|at| *at > 0) {
        return of.start..of.start + host;
    }
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.len() > 1
            && name.bytes().all(|byte| byte.is_ascii_alphabetic() || b"_-.".contains(&byte))
    };
    let end = value.find('=').and_then(|at| {
        let (before, name) = value.get(..at)?.rsplit_once(['&', ';'])?;
        (before.len() > 2 && is_name(name)).then_some(before.len())
    });
    // Only a parameter has others behind it: `?password=`, `Server=a;Password=`.
    let named = text.get(..of.start).and_then(|before| before.strip_suffix('='));
    let is_parameter = named.is_some_and(|named| {
        named.trim_end_matches(is_of_name).trim_end_matches(' ').ends_with(['?', '&', ';'])
    });
    of.start..end.filter(|_| is_parameter).map_or(of.end, |end| of.start + end)
}

fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
}

/// Whether a name stands before its arguments: `read(…)`, and `takeLine1 (…)` or `takeLine1 "…"` where
/// it is written as functions are.
fn is_applied(name: &str, behind: &str) -> bool {
    let humps = name.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let is_function = humps.starts_with(|c: char| c.is_ascii_uppercase())
        && name.len() >= humps.len() + 3
        && humps.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let argument = behind.strip_prefix(' ').unwrap_or_default();
    let is_operator = ["<$", "<*", ">>=", "|>"].iter().any(|of| argument.starts_with(of));
    behind.starts_with('(')
        || is_operator
        || is_function && argument.starts_with(['(', '"', '$', '\\'])
}

/// Whether a value stands in quotes behind this, or is that of an element, or a block of YAML.
fn is_in_quotes(before: &str) -> bool {
    let line = before.trim_end_matches([' ', '\t']);
    let is_block = || line.trim_end().trim_end_matches(['-', '+']).ends_with(['|', '>']);
    line.ends_with('\n') && is_block()
        || before.ends_with(['"', '\'', '`', '\u{201c}', '\u{2018}'])
        || before.ends_with('>') && !before.ends_with("=>") && !before.ends_with("->")
}

fn next_char(text: &str, at: usize) -> usize {
    (at + 1..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len() + 1)
}
