//! Whether an answer says as much as what is known, so that it may take its place.

use std::borrow::Cow;

use jiter::Jiter;

use super::{
    IgnoreReason, Observation, Policy, ToolRule,
    nested::Nested,
    response::check_depth,
    shown::is_scalar,
    substance::{first_refusal, is_emptied},
};
use crate::json::{self, Value};

/// Members that hold what a server says of an answer, and nothing of the world.
pub(super) const WORDS: [&str; 11] = [
    "message",
    "status",
    "detail",
    "code",
    "error",
    "errors",
    "ok",
    "success",
    "retry_after",
    "retryAfter",
    "reason",
];

/// What an answer is made of.
#[derive(Debug, PartialEq, Eq)]
enum Shape {
    /// Nothing: null, a blank text, an object that has nothing but words of the server.
    Nothing,
    /// An object with these members.
    Members(Vec<String>),
    Elements,
    Text {
        is_html: bool,
    },
    /// What is known in one short line of text, a number too: little is lost with it.
    Line,
    Scalar,
}

/// Why an answer may not take the place of what is known: it is empty, or of another shape.
///
/// An object is of the same shape where it has at least half of the members that the last full
/// response had: one that now holds nothing but an error has gone, and so has one that is null
/// beside an error. Where the policy reads a list or an object, it has to stay one or be null or
/// gone. JSON may take the place of a text, for it says more, but a bare number or boolean
/// only that of a short line. A page of HTML takes the place of no other text. Where nothing is known that
/// could be lost, anything may.
pub(super) fn refusal(
    policy: &Policy,
    rule: &ToolRule,
    known: &Observation,
    new: &Value,
) -> Option<IgnoreReason> {
    let is_word = |member: &str, is_scalar: bool| {
        let is_tick = || {
            policy.ticks.iter().any(|tick| matches!(tick.segments(), [first] if first == member))
        };
        is_scalar && (WORDS.contains(&member) || is_tick())
    };
    let was = of_text(&known.content, &is_word)?;
    let is = of_value(new, &is_word);
    let is_other = match (was, is) {
        (Shape::Nothing, _) => return first_refusal(policy, new),
        (Shape::Elements, Shape::Elements) => false,
        (_, Shape::Nothing) => return Some(IgnoreReason::Empty),
        (_, Shape::Elements) if new.as_array().is_some_and(<[Value]>::is_empty) => {
            return Some(IgnoreReason::Empty);
        }
        (Shape::Members(members), Shape::Members(new_members)) => {
            let Some(nested) = Nested::between(policy, rule, &known.content, new) else {
                return Some(IgnoreReason::OtherShape);
            };
            // What a part brought along since is in no full response.
            let of_full = members.iter().filter(|member| !known.ages.is_named(member));
            let (mut all, mut kept) = (0, 0);
            for member in of_full {
                all += 1;
                kept += usize::from(new_members.contains(member) && !nested.is_gone(member));
            }
            2 * kept < all
        }
        // Where a server fails it may send a page.
        (Shape::Text { is_html: false } | Shape::Line, Shape::Text { is_html: true })
        | (Shape::Text { .. }, Shape::Scalar) => true,
        (Shape::Text { .. } | Shape::Line, _) => false,
        (was, is) => was != is,
    };
    if is_other {
        return Some(IgnoreReason::OtherShape);
    }
    is_emptied(policy, &known.content, new).then_some(IgnoreReason::Empty)
}

/// Whether an answer can be kept: it could not be read again if it were nested too deep.
pub(super) fn fits(value: &Value) -> bool {
    check_depth(value, 0).is_ok()
}

/// What a text says: what is in it where it is a string of JSON, else the text itself.
pub(super) fn meant(text: &str) -> Cow<'_, str> {
    if !text.trim_start().starts_with('"') {
        return Cow::Borrowed(text);
    }
    match json::read(text.as_bytes()) {
        Ok(Value::String(inside)) => Cow::Owned(inside),
        _ => Cow::Borrowed(text),
    }
}

/// The longest text that counts as a line, in bytes.
const LINE: usize = 240;

fn is_line(text: &str) -> bool {
    text.len() <= LINE && !text.contains('\n')
}

/// Whether an answer is a refusal in a line of text, whatever the tool: `Rate limited, try again`.
pub(super) fn is_refusal(payload: &Value) -> bool {
    const BEGINNINGS: [&str; 11] = [
        "rate limit",
        "rate-limit",
        "too many requests",
        "429",
        "502 bad",
        "503 service",
        "504 gateway",
        "bad gateway",
        "service unavailable",
        "internal server error",
        "gateway time",
    ];
    let Some(text) = payload.as_str() else { return false };
    let text = meant(text);
    let text = text.trim();
    if is_html(text) {
        return is_html_error(text);
    }
    if !is_line(text) {
        return false;
    }
    let text = text.to_ascii_lowercase();
    BEGINNINGS.into_iter().any(|beginning| text.starts_with(beginning)) || is_error(&text)
}

/// Whether a line in small letters tells an error: `error: connection reset by peer`. What only
/// counts errors, or names a setting (`error: none`, `internal errors: 0`, `timeout: 30 s`), does
/// not.
fn is_error(line: &str) -> bool {
    const MEASURES: [&str; 5] = ["count", "rate", "log", "budget", "code"];
    const GOES_ON: [&str; 10] = [
        "after",
        "while",
        "waiting",
        "when",
        "reading",
        "writing",
        "connecting",
        "contacting",
        "expired",
        "error",
    ];
    let first_word = |rest: &str| {
        let mut words = rest.split(|c: char| !c.is_ascii_alphanumeric());
        words.find(|word| !word.is_empty()).unwrap_or_default().to_owned()
    };
    if let Some(rest) = line.strip_prefix("error:") {
        return !is_no_error(rest);
    }
    if let Some(rest) = line.strip_prefix("internal error") {
        return match rest.chars().next() {
            None => true,
            Some(':') => !is_no_error(rest.get(1..).unwrap_or_default()),
            Some(' ') => !MEASURES.iter().any(|measure| first_word(rest).starts_with(*measure)),
            Some(other) => other.is_ascii_punctuation() && other != '_' && other != '=',
        };
    }
    let rest = line.strip_prefix("timeout").or_else(|| line.strip_prefix("timed out"));
    rest.is_some_and(|rest| match rest.chars().next() {
        None | Some('.' | '!' | ',' | ';') => true,
        Some(':') => {
            let said = rest.get(1..).unwrap_or_default().trim_start();
            !is_no_error(said) && !said.starts_with(|c: char| c.is_ascii_digit())
        }
        Some(' ') => GOES_ON.contains(&first_word(rest).as_str()) || rest.ends_with("exceeded"),
        _ => false,
    })
}

/// Whether what follows `error:` says that there is none.
fn is_no_error(said: &str) -> bool {
    matches!(said.trim().trim_end_matches('.'), "0" | "none" | "null" | "nil" | "false" | "-")
}

/// Whether a text is a page of HTML, as servers send where they fail.
fn is_html(text: &str) -> bool {
    let text = text.trim_start();
    ["<html", "<!doctype html"].into_iter().any(|beginning| {
        let head = text.get(..beginning.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(beginning))
    })
}

/// Whether a page of HTML is what a server or a proxy sends in place of an answer: its text begins
/// with an error's code, or its title tells one.
fn is_html_error(page: &str) -> bool {
    const CODES: [&str; 18] = [
        "400", "401", "403", "404", "408", "429", "500", "501", "502", "503", "504", "520", "521",
        "522", "523", "524", "525", "526",
    ];
    const TITLES: [&str; 6] = [
        "bad gateway",
        "service unavailable",
        "service temporarily unavailable",
        "gateway time",
        "internal server error",
        "too many requests",
    ];
    /// How much of a page is looked at, in characters.
    const HEAD: usize = 2_048;
    let head: String = page.chars().take(HEAD).collect::<String>().to_ascii_lowercase();
    let title = head.split_once("<title>").and_then(|(_, title)| title.split_once("</title>"));
    let title = title.map_or("", |(title, _)| title);
    let says = |text: &str| {
        let first = text.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| !word.is_empty());
        first.is_some_and(|word| CODES.contains(&word))
            || TITLES.iter().any(|beginning| text.trim_start().starts_with(beginning))
    };
    // A proxy names the site first: `example.org | 502: Bad gateway`.
    let titled = title.split(['|', '-']).any(says);
    let texts = head.split('<').filter_map(|tag| tag.split_once('>').map(|(_, text)| text.trim()));
    titled || texts.into_iter().find(|text| !text.is_empty()).is_some_and(says)
}

/// The shape of a text, by what it says as JSON where it is a bare `null`, string, number or
/// boolean.
fn of_said(text: &str) -> Shape {
    // Most texts are none of these, and long; to look at their beginning is enough.
    let begins = |c: char| matches!(c, 'n' | 't' | 'f' | '-' | '0'..='9');
    let is_short = text.trim_start().starts_with(begins) && is_line(text.trim());
    match json::read(if is_short { text.as_bytes() } else { b"" }) {
        Ok(Value::Null) => Shape::Nothing,
        Ok(Value::Bool(_) | Value::Number(_)) => Shape::Scalar,
        _ if meant(text).trim().is_empty() => Shape::Nothing,
        _ => Shape::Text { is_html: is_html(text) },
    }
}

fn of_value(value: &Value, is_word: &dyn Fn(&str, bool) -> bool) -> Shape {
    match value {
        Value::Null => Shape::Nothing,
        Value::String(text) => of_said(text),
        Value::Array(_) => Shape::Elements,
        Value::Object(object) => {
            let members = object.iter().filter(|(key, value)| !is_word(key, is_scalar(value)));
            of_members(members.map(|(member, _)| member.clone()).collect())
        }
        Value::Bool(_) | Value::Number(_) => Shape::Scalar,
    }
}

fn of_members(members: Vec<String>) -> Shape {
    if members.is_empty() { Shape::Nothing } else { Shape::Members(members) }
}

/// The shape of JSON as text, of which no more is read than the members' names. `None` where it is
/// no JSON.
fn of_text(text: &str, is_word: &dyn Fn(&str, bool) -> bool) -> Option<Shape> {
    let text = text.trim_start();
    match text.bytes().next()? {
        b'{' => {
            let mut reader = Jiter::new(text.as_bytes());
            let mut members = Vec::new();
            let mut key = reader.next_object().ok()?.map(str::to_owned);
            while let Some(member) = key {
                let is_scalar =
                    !matches!(reader.peek().ok()?, jiter::Peek::Array | jiter::Peek::Object);
                if !is_word(&member, is_scalar) {
                    members.push(member);
                }
                reader.next_skip().ok()?;
                key = reader.next_key().ok()?.map(str::to_owned);
            }
            Some(of_members(members))
        }
        b'[' => Some(Shape::Elements),
        b'"' => {
            let mut reader = Jiter::new(text.as_bytes());
            let said = reader.next_str().ok()?;
            Some(match of_said(said) {
                Shape::Text { is_html: false } | Shape::Scalar if is_line(said) => Shape::Line,
                shape => shape,
            })
        }
        b'n' => Some(Shape::Nothing),
        _ => Some(Shape::Scalar),
    }
}
