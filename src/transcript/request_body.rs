//! The bodies of requests. Each repeats the conversation of the one before: what a body shares with
//! an earlier one is not read again.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use super::{Api, BodyText};
use crate::json::{self, Object, Value};

/// How many bodies are known at a time: sessions that run beside each other take turns.
const KNOWN: usize = 4;
/// So many times a name is looked at that may be that of the conversation.
const MOST_NAMES: usize = 8;

/// Where the items of the conversation stand in the body of a request, and what stands around them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyPlaces {
    /// The list, with its brackets.
    pub(crate) list: Range<usize>,
    /// Its elements, in order.
    pub(crate) items: Vec<Range<usize>>,
}

/// What a body has in common with one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedBody {
    /// How many items, the first ones, are the same byte for byte.
    pub(crate) items: usize,
    /// Whether all that stands around the conversation is the same.
    pub(crate) is_head: bool,
}

impl BodyPlaces {
    /// The places of a body whose member `key` is a list; `None` where it has no such member, or
    /// several. What it shares with `before`, a body with the same key, is not scanned.
    ///
    /// The list is known to be one of JSON, if its items are, and what stands around it.
    pub(crate) fn of(
        body: &BodyText,
        key: &str,
        before: Option<(&BodyText, &Self)>,
    ) -> Option<(Self, SharedBody)> {
        if let Some(found) = before.and_then(|before| Self::continued(body, key, before)) {
            return Some(found);
        }
        let body = &*body.to_shared();
        let members = json::children(body, 0..body.len());
        let mut found = members.into_iter().filter(|member| member.key.as_deref() == Some(key));
        let (only, None) = (found.next()?, found.next()) else { return None };
        let start = only.value.start;
        let list = body.get(start..).filter(|text| text.starts_with('['))?;
        let (items, end) = listed(list, start, true)?;
        Some((Self { list: start..end, items }, SharedBody::default()))
    }

    /// As [`BodyPlaces::of`], where the body has at least the beginning of the list from `before`,
    /// also behind another head.
    fn continued(
        body: &BodyText,
        key: &str,
        (text, known): (&BodyText, &Self),
    ) -> Option<(Self, SharedBody)> {
        let before = known.list.start;
        let is_same_start = body.shared_start(text) > before;
        let start = if is_same_start { before } else { list_start(&body.to_shared(), key)? };
        let same = before + body.shared_from(start, text, before);
        // A number may go on after what is shared; what ends with a quote or a bracket does not.
        let last = |item: &Range<usize>| text.byte(item.end.saturating_sub(1));
        let is_closed = |item: &Range<usize>| matches!(last(item), Some(b'}' | b']' | b'"'));
        let is_shared =
            |item: &Range<usize>| item.end < same || (item.end == same && is_closed(item));
        let shared = known.items.partition_point(is_shared);
        if shared == 0 && !is_same_start {
            return None;
        }
        let moved = |item: &Range<usize>| item.start - before + start..item.end - before + start;
        let known_items: Vec<Range<usize>> = known.items.get(..shared)?.iter().map(moved).collect();
        // From the byte before what is new: the bracket, or the end of an item.
        let from = known_items.last().map_or(start, |last| last.end - 1);
        let rest = body.part(from..body.len())?;
        let (more, end) = listed(&rest, from, shared == 0)?;
        let is_head = is_same_start && body.ends_alike(end, text, known.list.end);
        if !is_head {
            let after = ["{", rest.get(end - from..)?].concat();
            let members = json::children_after(&after, 0..after.len(), 1);
            if members.iter().any(|member| member.key.as_deref() == Some(key)) {
                return None;
            }
        }
        let mut items = known_items;
        items.extend(more);
        Some((Self { list: start..end, items }, SharedBody { items: shared, is_head }))
    }

    /// The body with an empty list in the place of the conversation.
    pub(crate) fn head(&self, body: &BodyText) -> String {
        let before = body.part(0..self.list.start).unwrap_or_default();
        let after = body.part(self.list.end..body.len()).unwrap_or_default();
        [&*before, "[]", &*after].concat()
    }
}

/// Where the list of a member begins, the first of its name, by what stands before it alone; `None`
/// where that cannot be told so.
fn list_start(body: &str, key: &str) -> Option<usize> {
    let name = format!("\"{key}\"");
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
    // Values before it may have such members too.
    body.match_indices(&name).take(MOST_NAMES).find_map(|(at, _)| {
        let (head, rest) = body.split_at_checked(at)?;
        let value = rest.get(name.len()..)?.trim_start_matches(blank).strip_prefix(':')?;
        let value = value.trim_start_matches(blank);
        let head = [head, &name, ":[]}"].concat();
        let members = json::children(&head, 0..head.len());
        let last = members.last()?;
        let is_member = last.key.as_deref() == Some(key) && last.value.end + 1 == head.len();
        (is_member && value.starts_with('[')).then(|| body.len() - value.len())
    })
}

/// The elements in the rest of a list, and where the list ends. `rest` begins one byte before what
/// comes after the bracket of the list, or after one of its elements. `offset` is where the rest
/// stands in the body. `None` where it is no list of JSON.
fn listed(rest: &str, offset: usize, is_start: bool) -> Option<(Vec<Range<usize>>, usize)> {
    let mut items: Vec<Range<usize>> =
        json::children_after(rest, 0..rest.len(), 1).into_iter().map(|item| item.value).collect();
    let blank = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r');
    let mut end = 1;
    for item in &items {
        let between = rest.get(end..item.start)?.trim_matches(blank);
        let expected = if is_start && end == 1 { "" } else { "," };
        if between != expected {
            return None;
        }
        end = item.end;
    }
    let close = rest.get(end..)?.trim_start_matches(blank);
    let end = rest.len() - close.len();
    for item in &mut items {
        *item = item.start + offset..item.end + offset;
    }
    close.starts_with(']').then_some((items, offset + end + 1))
}

/// A body that was read.
#[derive(Clone, Debug)]
pub(super) struct ReadBody {
    text: BodyText,
    key: &'static str,
    places: BodyPlaces,
    /// The members besides the conversation.
    pub(super) head: Arc<Object>,
    pub(super) items: Vec<Arc<Value>>,
}

/// The bodies that were read last.
#[derive(Debug, Default)]
pub(super) struct ReadBodies {
    known: VecDeque<ReadBody>,
    /// How many items were parsed so far, for tests.
    #[cfg(test)]
    pub(super) parsed: usize,
}

impl ReadBodies {
    /// Reads a body of JSON whose conversation is a list, where the request may go to a model;
    /// `None` of others.
    ///
    /// Parses the items that no body before it has. The values are those of the whole body.
    pub(super) fn read(&mut self, uri: &str, text: &BodyText) -> Option<ReadBody> {
        let api = Api::of_uri(uri)?;
        let key = api.conversation_key();
        let found = self.longest(text, key);
        let before = found.and_then(|at| self.known.get(at));
        let (places, shared) =
            BodyPlaces::of(text, key, before.map(|known| (&known.text, &known.places)))?;
        let head = match before.filter(|_| shared.is_head) {
            Some(known) => Arc::clone(&known.head),
            None => match json::read_mended(places.head(text).as_bytes()).ok()?.0 {
                Value::Object(mut head) => {
                    head.shift_remove(key);
                    Arc::new(head)
                }
                _ => return None,
            },
        };
        let known = before.and_then(|known| known.items.get(..shared.items)).unwrap_or_default();
        let mut items = Vec::with_capacity(places.items.len());
        items.extend_from_slice(known);
        for place in places.items.iter().skip(shared.items) {
            items.push(Arc::new(item(&text.part(place.clone())?)?));
        }
        #[cfg(test)]
        {
            self.parsed += places.items.len() - shared.items;
        }
        let read = ReadBody { text: text.clone(), key, places, head, items };
        // Another session may begin alike.
        let goes_on = |at: &usize| {
            self.known.get(*at).is_some_and(|known| shared.items * 2 > known.items.len())
        };
        match found.filter(goes_on) {
            Some(at) => drop(self.known.remove(at)),
            None => self.known.truncate(KNOWN - 1),
        }
        self.known.push_front(read.clone());
        Some(read)
    }

    /// The known body that a text goes on from: the last one, unless another begins more like it.
    fn longest(&self, text: &BodyText, key: &str) -> Option<usize> {
        let of_key = |at: &usize| self.known.get(*at).is_some_and(|known| known.key == key);
        let shared = |at: usize| {
            let known = self.known.get(at)?;
            let same = text.shared_start(&known.text);
            Some((same.checked_sub(known.places.list.start + 1)?, known.places.list.len()))
        };
        let mut best = None;
        for at in (0..self.known.len()).filter(of_key) {
            let Some((same, length)) = shared(at) else { continue };
            // Most of the conversation is enough.
            if same.saturating_mul(2) >= length {
                return Some(at);
            }
            if best.is_none_or(|(most, _)| same > most) {
                best = Some((same, at));
            }
        }
        best.map(|(_, at)| at).or_else(|| self.longest_list(text, key))
    }

    /// The known body whose conversation begins most like that of a text, which has another head.
    fn longest_list(&self, text: &BodyText, key: &str) -> Option<usize> {
        let of_key = |(_, known): &(usize, &ReadBody)| known.key == key;
        let mut known = self.known.iter().enumerate().filter(of_key).peekable();
        known.peek()?;
        let start = list_start(&text.to_shared(), key)?;
        let shared =
            |known: &ReadBody| text.shared_from(start, &known.text, known.places.list.start);
        // Of several the last one.
        let best = known.map(|(at, known)| (shared(known), at)).rev();
        best.max_by_key(|(same, _)| *same).filter(|(same, _)| *same > 1).map(|(_, at)| at)
    }
}

/// An item, nested as deep as it is in its body.
fn item(text: &str) -> Option<Value> {
    let nested = ["[[", text, "]]"].concat();
    let mut value = json::read_mended(nested.as_bytes()).ok()?.0;
    for _ in 0..2 {
        match value {
            Value::Array(mut list) if list.len() == 1 => value = list.pop()?,
            _ => return None,
        }
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(head: &str, items: &[String], tail: &str) -> BodyText {
        format!("{{\"model\":\"m\"{head},\"messages\":[{}]{tail}}}", items.join(", ")).into()
    }

    fn read(bodies: &mut ReadBodies, text: &BodyText) -> Option<(Value, Vec<Value>)> {
        let read = bodies.read("/v1/messages", text)?;
        let items = read.items.iter().map(|item| Value::clone(item)).collect();
        Some((Value::Object((*read.head).clone()), items))
    }

    /// What the body is when it is read as a whole.
    fn whole(text: &str) -> Option<(Value, Vec<Value>)> {
        let Value::Object(mut body) = json::read_mended(text.as_bytes()).ok()?.0 else {
            return None;
        };
        let Value::Array(items) = body.shift_remove("messages")? else { return None };
        Some((Value::Object(body), items))
    }

    #[test]
    fn a_growing_conversation_is_parsed_once() {
        let mut bodies = ReadBodies::default();
        let item = |at: usize| format!("{{\"role\":\"user\",\"content\":\"{at}\"}}");
        for count in 1..=100 {
            let items: Vec<String> = (0..count).map(item).collect();
            let text = body("", &items, ",\"tools\":[]");
            assert_eq!(read(&mut bodies, &text), whole(&text));
        }
        assert_eq!(bodies.parsed, 100);
    }

    #[test]
    fn a_conversation_behind_a_head_that_changes_is_parsed_once() {
        let mut bodies = ReadBodies::default();
        let item = |at: usize| format!("{{\"role\":\"user\",\"content\":\"{at}\"}}");
        for count in 1..=100_usize {
            let items: Vec<String> = (0..count).map(item).collect();
            // Its length changes too.
            let head = format!(",\"metadata\":{{\"messages\":[\"{}\"]}}", count.pow(2));
            let text = body(&head, &items, ",\"tools\":[]");
            assert_eq!(read(&mut bodies, &text), whole(&text));
        }
        assert_eq!(bodies.parsed, 100);
    }

    #[test]
    fn sessions_beside_each_other_are_parsed_once_each() {
        let mut bodies = ReadBodies::default();
        for count in 1..=20 {
            for session in 0..KNOWN {
                let item = |at: usize| format!("\"{session} {at}\"");
                let items: Vec<String> = (0..count).map(item).collect();
                let text = body(&format!(",\"system\":\"{session}\""), &items, "");
                assert_eq!(read(&mut bodies, &text), whole(&text));
            }
        }
        assert_eq!(bodies.parsed, 20 * KNOWN);
    }

    #[test]
    fn sessions_that_begin_alike_are_parsed_once_each_but_for_that() {
        let mut bodies = ReadBodies::default();
        for count in 1..=20 {
            for session in 0..KNOWN {
                let item = |at: usize| format!("\"{session} {at}\"");
                let items: Vec<String> =
                    std::iter::once("\"system\"".to_owned()).chain((0..count).map(item)).collect();
                let text = body("", &items, "");
                assert_eq!(read(&mut bodies, &text), whole(&text));
            }
        }
        let own = 20 * KNOWN;
        assert!((own..=own + 4 * KNOWN).contains(&bodies.parsed), "{}", bodies.parsed);
    }

    #[test]
    fn what_is_no_json_is_read_by_nobody() {
        let mut bodies = ReadBodies::default();
        let good = body("", &["1".to_owned(), "{}".to_owned()], "");
        assert!(read(&mut bodies, &good).is_some());
        let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
        for items in ["1 2", "1,,2", "1,", ",1", "1,{}x", "1,{},\"", "tru", &deep] {
            let text = body("", &[items.to_owned()], "");
            assert_eq!((read(&mut bodies, &text), whole(&text)), (None, None), "{items}");
        }
        for text in
            ["{\"messages\":[1]} x", "{\"messages\":[1],}", "[]", "", "{\"messages\":\"a\"}"]
        {
            assert_eq!(read(&mut bodies, &text.into()), None, "{text}");
        }
        // The last of two members stands, which is for who reads the whole.
        assert_eq!(read(&mut bodies, &"{\"messages\":[1],\"messages\":[2]}".into()), None);
        assert_eq!(read(&mut bodies, &body("", &["1".to_owned()], ",\"messages\":[2]")), None);
    }

    proptest! {
        #[test]
        fn a_body_reads_the_same_whatever_came_before(
            bodies in prop::collection::vec(
                (0_usize..3, prop::collection::vec("[0-9]{1,2}|\\{\"a\":[1,\"\\]\"]\\}|\"x,y\"|\\[", 0..6), 0_usize..3),
                1..8,
            ),
        ) {
            let mut known = ReadBodies::default();
            let pieces = ["", ",\"system\":\"s\"", ",\"a\":{\"messages\":[1]}"];
            for (head, items, tail) in bodies {
                let text = body(pieces[head], &items, pieces[tail]);
                let expected = whole(&text);
                let found = read(&mut known, &text);
                // What is refused is read as a whole.
                prop_assert!(found.is_none() || found == expected, "{}", text);
                prop_assert!(found.is_some() || expected.is_none(), "{}", text);
            }
        }
    }
}
