use jiter::Jiter;

use super::{
    Pointer,
    written::{Part, SerializedPayload},
};
use crate::json::{Object, Value};

/// The most paths of a response that are noted as changed.
pub(super) const MOST_CHANGES: usize = 64;

/// The paths whose values a response changed, up to [`MOST_CHANGES`]: scalars, arrays, and what
/// appeared or went.
#[derive(Debug, Default)]
pub(super) struct Changes {
    paths: Vec<Pointer>,
    path: Vec<String>,
}

impl Changes {
    pub(super) fn enter(&mut self, segment: &str) {
        self.path.push(segment.to_owned());
    }

    pub(super) fn leave(&mut self) {
        self.path.pop();
    }

    pub(super) fn path(&self) -> &[String] {
        &self.path
    }

    /// Notes that what stands at the path that was entered is another.
    pub(super) fn note(&mut self) {
        if !self.is_full() {
            self.paths.push(Pointer::of(&self.path));
        }
    }

    fn is_full(&self) -> bool {
        self.paths.len() >= MOST_CHANGES
    }

    pub(super) fn into_paths(self) -> Vec<Pointer> {
        self.paths
    }

    /// Notes where `new` differs from the compact JSON `old`, member by member. Other values differ
    /// where their texts do.
    ///
    /// Runs in O(length). What is the same is compared and not read.
    pub(super) fn between(&mut self, old: &str, value: &Value, new: &SerializedPayload) {
        let depth = self.path.len();
        let mut comparison =
            Comparison { old: old.as_bytes(), new: new.text().as_bytes(), changes: self };
        let end = comparison.value(0, value, new.root());
        // Somebody else wrote it, and no JSON; or there is no more to note.
        if end.is_none() {
            self.path.truncate(depth);
            self.note();
        }
    }
}

/// Two texts that are compared. Places are offsets; what is `None` could not be read, or need not
/// be any more.
struct Comparison<'a> {
    old: &'a [u8],
    new: &'a [u8],
    changes: &'a mut Changes,
}

impl Comparison<'_> {
    /// Compares the value at this place of the old text. Says where it ends there.
    fn value(&mut self, at: usize, value: &Value, part: &Part) -> Option<usize> {
        if self.changes.is_full() {
            return None;
        }
        let (old, new) = (self.old.get(at..)?, self.new.get(part.range())?);
        let is_end = |next: &u8| matches!(next, b',' | b'}' | b']') || next.is_ascii_whitespace();
        if old.starts_with(new) && old.get(new.len()).is_none_or(is_end) {
            return Some(at + new.len());
        }
        match (old.first()?, value) {
            (b'{', Value::Object(members)) => self.members(at, members, part),
            (b'[', Value::Array(_)) => {
                self.changes.note();
                self.elements(at, part)
            }
            _ => {
                self.changes.note();
                self.skip(at)
            }
        }
    }

    fn members(&mut self, at: usize, members: &Object, part: &Part) -> Option<usize> {
        let mut is_known = vec![false; members.len()];
        let mut at = self.gap(at + 1);
        let mut next = *self.old.get(at)?;
        while next != b'}' {
            let (key, after) = self.key(at)?;
            self.changes.enter(&key);
            let end = if let Some((index, _, value)) = members.get_full(&key) {
                *is_known.get_mut(index)? = true;
                self.value(after, value, part.inside().get(index)?)?
            } else {
                self.changes.note();
                self.skip(after)?
            };
            self.changes.leave();
            (at, next) = self.step(end, b'}')?;
        }
        for (key, _) in members.keys().zip(is_known).filter(|(_, is_known)| !is_known) {
            self.changes.enter(key);
            self.changes.note();
            self.changes.leave();
        }
        Some(at + 1)
    }

    /// Finds the end of an array of which little has changed: elements that are the same are not
    /// read.
    fn elements(&self, at: usize, part: &Part) -> Option<usize> {
        let elements = part.inside();
        let (mut at, mut index) = (self.gap(at + 1), 0);
        let mut next = *self.old.get(at)?;
        while next != b']' {
            let same = elements.get(index).and_then(|element| {
                let from = element.range().start;
                let shared = shared(self.old.get(at..)?, self.new.get(from..part.range().end)?);
                // What ends an element has to be the same as well.
                let is_same = |element: &Part| element.range().end < from + shared;
                let count = elements.get(index..)?.partition_point(is_same);
                let last = elements.get(index + count.checked_sub(1)?)?;
                Some((count, at + last.range().end - from))
            });
            let (count, end) = match same {
                Some(same) => same,
                None => (1, self.skip(at)?),
            };
            index += count;
            (at, next) = self.step(end, b']')?;
        }
        Some(at + 1)
    }

    /// Goes on behind a value: to the next one, or to what closes the container.
    fn step(&self, at: usize, close: u8) -> Option<(usize, u8)> {
        let at = self.gap(at);
        match self.old.get(at)? {
            b',' => {
                let at = self.gap(at + 1);
                // A container that ends here would not be JSON, and a value is there else.
                self.old.get(at).filter(|next| **next != close).map(|next| (at, *next))
            }
            next if *next == close => Some((at, close)),
            _ => None,
        }
    }

    /// The key at this place, and where its value begins.
    fn key(&self, at: usize) -> Option<(String, usize)> {
        let mut reader = Jiter::new(self.old.get(at..)?);
        let key = reader.next_str().ok()?.to_owned();
        let at = self.gap(at + reader.current_index());
        (self.old.get(at) == Some(&b':')).then(|| (key, self.gap(at + 1)))
    }

    /// Where the value at this place ends.
    fn skip(&self, at: usize) -> Option<usize> {
        let mut reader = Jiter::new(self.old.get(at..)?);
        reader.next_skip().ok()?;
        Some(at + reader.current_index())
    }

    /// The first place from here on that is no white space.
    fn gap(&self, at: usize) -> usize {
        let rest = self.old.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
    }
}

/// How many bytes two texts have in common at their beginnings.
fn shared(a: &[u8], b: &[u8]) -> usize {
    const STRIDE: usize = 64;
    let strides = a.chunks_exact(STRIDE).zip(b.chunks_exact(STRIDE));
    let same = STRIDE * strides.take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(same..).unwrap_or_default(), b.get(same..).unwrap_or_default());
    same + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn between(old: &str, new: &str) -> Vec<String> {
        let mut changes = Changes::default();
        let new = json::read(new.as_bytes()).unwrap();
        changes.between(old, &new, &SerializedPayload::of(&new, 0));
        changes.into_paths().iter().map(Pointer::to_string).collect()
    }

    #[test]
    fn members_are_compared_one_by_one_and_arrays_as_wholes() {
        let paths = between(
            r#"{"a":1,"b":{"c":[1,2],"d":"x","gone":0},"e":[{"f":"\n"}],"g":{"h":1},"i":{},"j":[1]}"#,
            r#"{"g":{"h":1},"a":1.0,"b":{"d":"x","c":[1,3],"new":0},"e":[{"f":"\n"}],"i":1,"j":[1,2]}"#,
        );
        assert_eq!(paths, ["/a", "/b/c", "/b/gone", "/b/new", "/i", "/j"]);
    }

    #[test]
    fn what_follows_an_array_that_changed_is_found() {
        let new = r#"{"a":[{"x":1},{"x":[2]},{"x":"]"}],"z":1}"#;
        for (old, paths) in [
            (r#"{"a":[{"x":1},{"x":[9]},{"x":"]"}],"z":1}"#, &["/a"][..]),
            (r#"{"a":[{"x":9},{"x":[9]},{"x":"}]"}],"z":2}"#, &["/a", "/z"]),
            (r#"{"a":[{"x":[2]},{"x":"]"}],"z":2}"#, &["/a", "/z"]),
            (r#"{"a":[{"x":1},{"x":[2]},{"x":"]"},4,[5]],"z":2}"#, &["/a", "/z"]),
            (r#"{"a":[{"x":1},{"x":[2]},{"x":"]"}],"z":12}"#, &["/z"]),
            (r#"{"a":[],"z":1}"#, &["/a"]),
            (r#"{"a":7,"z":2,"y":0}"#, &["/a", "/z", "/y"]),
            (r#"{ "z" : 1 , "a" : [ {"x":1} , {"x":0}] }"#, &["/a"]),
            (r#"{"z":1,"a":[{"x":1},"#, &["/a", ""]),
            ("", &[""]),
            ("[1]", &[""]),
        ] {
            assert_eq!(between(old, new), paths, "{old}");
        }
        assert_eq!(between("[1,22,3]", "[1,2,3]"), [""]);
        assert_eq!(between(new, new), [""; 0]);
        assert_eq!(between(r#"{"a":[1],"b":12}"#, r#"{"a":[],"b":1}"#), ["/a", "/b"]);
    }

    #[test]
    fn no_more_changes_are_noted_than_there_is_room_for() {
        let object = |value: u32| {
            let members: Vec<String> = (0..500).map(|at| format!("\"{at}\":{value}")).collect();
            format!("{{{}}}", members.join(","))
        };
        assert_eq!(between(&object(1), &object(2)).len(), MOST_CHANGES);
    }
}
