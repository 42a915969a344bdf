use crate::{
    hud::{Owner, Span},
    json::{Number, Object, Path, PathElement, Value},
    text::TextRange,
};

/// JSON whose strings know who wrote them. Keys of objects are framing.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnedJson {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(OwnedText),
    /// An array.
    List(Vec<OwnedJson>),
    /// The members of an object, in order.
    Map(Vec<(String, OwnedJson)>),
}

/// A string with its owners: spans in order, without gap or overlap, that sum to its length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnedText {
    text: String,
    spans: Vec<Span>,
}

impl OwnedText {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Who wrote it.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Who the byte at `offset` belongs to; `None` past the end. Runs in O(log n) time.
    pub fn owner_of(&self, offset: usize) -> Option<&Owner> {
        let after = self.spans.partition_point(|span| span.range.start() <= offset);
        let span = self.spans.get(after.checked_sub(1)?)?;
        span.range.contains(offset).then_some(&span.owner)
    }

    pub(super) fn push(&mut self, text: &str, owner: &Owner) {
        if text.is_empty() {
            return;
        }
        let start = self.text.len();
        self.text.push_str(text);
        match self.spans.last_mut() {
            Some(last) if last.owner == *owner => {
                last.range = TextRange::at(last.range.start(), last.range.len() + text.len());
            }
            _ => {
                let range = TextRange::at(start, text.len());
                self.spans.push(Span { range, owner: owner.clone() });
            }
        }
    }

    pub(super) fn append(&mut self, other: &OwnedText) {
        for span in &other.spans {
            self.push(span.range.of(&other.text), &span.owner);
        }
    }

    /// Cuts the white space at the end. Says whether there was any.
    pub(super) fn trim_end(&mut self) -> bool {
        let len = self.text.trim_end().len();
        if len == self.text.len() {
            return false;
        }
        self.text.truncate(len);
        self.spans.retain(|span| span.range.start() < len);
        if let Some(last) = self.spans.last_mut() {
            last.range = TextRange::at(last.range.start(), len - last.range.start());
        }
        true
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

impl OwnedJson {
    /// A string that belongs to no frame, by the name of what it is.
    pub(super) fn framing(text: &str, name: &'static str) -> Self {
        Self::of_text(text, &Owner::Framing(name))
    }

    /// A string that is part of the form: roles, types, keys spelled as values.
    pub(super) fn form(text: &str) -> Self {
        Self::framing(text, "form")
    }

    pub(crate) fn of_text(text: &str, owner: &Owner) -> Self {
        let mut owned = OwnedText::default();
        owned.push(text, owner);
        Self::Text(owned)
    }

    /// A value that one owner wrote.
    pub(crate) fn of_value(value: &Value, owner: &Owner) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::of_text(text, owner),
            Value::Array(array) => {
                Self::List(array.iter().map(|value| Self::of_value(value, owner)).collect())
            }
            Value::Object(object) => Self::of_object(object, owner),
        }
    }

    pub(super) fn of_object(object: &Object, owner: &Owner) -> Self {
        let member = |(key, value): (&String, &Value)| (key.clone(), Self::of_value(value, owner));
        Self::Map(object.iter().map(member).collect())
    }

    /// An object with these members.
    pub(super) fn map<const N: usize>(members: [(&str, OwnedJson); N]) -> Self {
        Self::Map(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Sets a member of an object, in its place where it has one.
    pub(super) fn put(&mut self, key: &str, value: OwnedJson) {
        if let OwnedJson::Map(members) = self {
            match members.iter_mut().find(|(name, _)| name == key) {
                Some((_, old)) => *old = value,
                None => members.push((key.to_owned(), value)),
            }
        }
    }

    /// Takes a member out of an object.
    pub(super) fn remove(&mut self, key: &str) -> Option<OwnedJson> {
        let OwnedJson::Map(members) = self else { return None };
        let at = members.iter().position(|(name, _)| name == key)?;
        Some(members.remove(at).1)
    }

    /// The member `key` of an object.
    ///
    /// Cost: O(members).
    pub fn get(&self, key: &str) -> Option<&OwnedJson> {
        match self {
            OwnedJson::Map(members) => {
                members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The element `index` of a list.
    pub fn at(&self, index: usize) -> Option<&OwnedJson> {
        match self {
            OwnedJson::List(list) => list.get(index),
            _ => None,
        }
    }

    /// The value at a JSON pointer (RFC 6901).
    ///
    /// Cost: O(members on the way).
    pub fn pointer(&self, pointer: &str) -> Option<&OwnedJson> {
        pointer.split('/').skip(1).try_fold(self, |at, segment| {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            match at {
                OwnedJson::List(_) => at.at(segment.parse().ok()?),
                _ => at.get(&segment),
            }
        })
    }

    pub(super) fn pointer_mut(&mut self, pointer: &str) -> Option<&mut OwnedJson> {
        pointer.split('/').skip(1).try_fold(self, |at, segment| {
            let segment = segment.replace("~1", "/").replace("~0", "~");
            match at {
                OwnedJson::List(list) => list.get_mut(segment.parse::<usize>().ok()?),
                OwnedJson::Map(members) => {
                    members.iter_mut().find(|(name, _)| *name == segment).map(|(_, value)| value)
                }
                _ => None,
            }
        })
    }

    pub(super) fn as_text_mut(&mut self) -> Option<&mut OwnedText> {
        match self {
            OwnedJson::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The string where this is one.
    pub fn as_text(&self) -> Option<&OwnedText> {
        match self {
            OwnedJson::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Who wrote the string; nothing where this is none.
    pub fn spans(&self) -> &[Span] {
        self.as_text().map_or(&[], OwnedText::spans)
    }

    pub(super) fn is_str(&self, expected: &str) -> bool {
        self.as_text().is_some_and(|text| text.as_str() == expected)
    }

    /// The JSON without owners. Copies every text. O(text).
    pub fn to_value(&self) -> Value {
        match self {
            OwnedJson::Null => Value::Null,
            OwnedJson::Bool(flag) => Value::Bool(*flag),
            OwnedJson::Number(number) => Value::Number(number.clone()),
            OwnedJson::Text(text) => text.text.as_str().into(),
            OwnedJson::List(list) => list.iter().map(OwnedJson::to_value).collect(),
            OwnedJson::Map(members) => {
                let member = |(key, value): &(String, OwnedJson)| (key.clone(), value.to_value());
                Value::Object(members.iter().map(member).collect())
            }
        }
    }

    /// Every string, in order, with where it stands.
    ///
    /// Cost: O(the strings); copies none.
    pub fn texts(&self) -> Vec<(Path, &OwnedText)> {
        let mut texts = Vec::new();
        self.visit(&mut Vec::new(), &mut |path, text| {
            texts.push((path.iter().cloned().collect(), text));
        });
        texts
    }

    fn visit<'a>(
        &'a self,
        path: &mut Vec<PathElement>,
        found: &mut impl FnMut(&[PathElement], &'a OwnedText),
    ) {
        match self {
            OwnedJson::Text(text) => found(path, text),
            OwnedJson::List(list) => {
                for (index, value) in list.iter().enumerate() {
                    path.push(PathElement::Index(index));
                    value.visit(path, found);
                    path.pop();
                }
            }
            OwnedJson::Map(members) => {
                for (key, value) in members {
                    path.push(PathElement::Key(key.clone()));
                    value.visit(path, found);
                    path.pop();
                }
            }
            OwnedJson::Null | OwnedJson::Bool(_) | OwnedJson::Number(_) => {}
        }
    }
}
