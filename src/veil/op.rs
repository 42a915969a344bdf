use std::{collections::HashMap, sync::Arc};

use super::Facet;
use crate::{
    Error, ErrorKind, Result,
    id::FacetId,
    json::{self, Fields, Object, ObjectExt, Path, PathElement, Value, serde_through_json},
};

serde_through_json!(FacetOp);

/// One change to the facets.
#[derive(Clone, Debug, PartialEq)]
pub struct FacetOp {
    /// What changes.
    pub change: FacetChange,
    /// Members of the wire form that are not known here.
    pub extra: Object,
}

/// What an op changes.
#[derive(Clone, Debug, PartialEq)]
pub enum FacetChange {
    /// Adds a facet; one with the same id is replaced.
    Add(Arc<Facet>),
    /// Changes members of a facet, named as in its wire form. Objects merge deeply; everything
    /// else replaces what was there. `null` is stored inside of `state` and `attributes`, and
    /// empties a member of the facet itself. The id cannot change.
    ///
    /// Costs time in the size of the facet, however small the change.
    Rewrite {
        /// The facet to change.
        id: FacetId,
        /// The new members.
        changes: Object,
        /// Members to take away, by path; those that are not there are passed over. All paths
        /// speak of the facet with `changes` merged in, before anything is taken away.
        unset: Vec<Path>,
    },
    /// Removes a facet.
    Remove(FacetId),
}

impl From<FacetChange> for FacetOp {
    fn from(change: FacetChange) -> Self {
        Self { change, extra: Object::new() }
    }
}

impl FacetOp {
    /// Adds `facet`.
    pub fn add(facet: Facet) -> Self {
        FacetChange::Add(Arc::new(facet)).into()
    }

    /// Rewrites members of the facet `id`.
    pub fn rewrite(id: impl Into<FacetId>, changes: Object) -> Self {
        FacetChange::Rewrite { id: id.into(), changes, unset: Vec::new() }.into()
    }

    /// Removes the facet `id`.
    pub fn remove(id: impl Into<FacetId>) -> Self {
        FacetChange::Remove(id.into()).into()
    }

    /// The facet that the op is about.
    pub fn facet_id(&self) -> &FacetId {
        match &self.change {
            FacetChange::Add(facet) => &facet.id,
            FacetChange::Rewrite { id, .. } | FacetChange::Remove(id) => id,
        }
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        match &self.change {
            FacetChange::Add(facet) => {
                object.put("type", "addFacet");
                object.put("facet", facet.to_json());
            }
            FacetChange::Rewrite { id, changes, unset } => {
                object.put("type", "rewriteFacet");
                object.put("id", id.as_str());
                object.put("changes", changes.clone());
                if !unset.is_empty() {
                    object.put("unset", unset.iter().map(Path::to_json).collect::<Value>());
                }
            }
            FacetChange::Remove(id) => {
                object.put("type", "removeFacet");
                object.put("id", id.as_str());
            }
        }
        object.put_unknown(&self.extra);
        Value::Object(object)
    }

    /// Loads the wire form. The id of a rewrite or removal may be spelled `facetId`. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for an unknown type, a missing member or one of the wrong type.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "an op")?;
        let change = FacetChange::from_fields(&mut fields)?;
        Ok(Self { change, extra: fields.rest() })
    }
}

impl FacetChange {
    fn from_fields(fields: &mut Fields) -> Result<Self> {
        let kind = Fields::required(fields.string("type")?, "type", "a string")?;
        if kind == "addFacet" {
            let facet = Fields::required(fields.take("facet"), "facet", "a facet")?;
            let facet = Facet::from_json(facet).map_err(|error| error.under("facet"))?;
            return Ok(Self::Add(Arc::new(facet)));
        }
        let mut id = fields.string("id")?;
        if id.is_none() {
            id = fields.string("facetId")?;
        }
        let id = FacetId::from(Fields::required(id, "id", "a string")?);
        match kind.as_str() {
            "rewriteFacet" => {
                let changes = fields.object("changes")?.unwrap_or_default();
                let unset = fields.nested("unset", json::from_value)?.unwrap_or_default();
                Ok(Self::Rewrite { id, changes, unset })
            }
            "removeFacet" => Ok(Self::Remove(id)),
            other => {
                let expected = "addFacet, rewriteFacet or removeFacet";
                Err(Error::expected(expected, format_args!("{other:?}")).under("type"))
            }
        }
    }
}

/// The facet with `changes` merged in and `unset` taken away.
///
/// # Errors
/// `Shape` where the result is no facet, or would have another id.
pub(super) fn rewritten(facet: &Facet, changes: &Object, unset: &[Path]) -> Result<Facet> {
    if changes.get("id").is_some_and(|id| id.as_str() != Some(facet.id.as_str())) {
        return Err(Error::new(ErrorKind::Shape, "a rewrite cannot change the id of a facet"));
    }
    let mut value = facet.to_json();
    if let Value::Object(object) = &mut value {
        merge(object, changes);
    }
    if !unset.is_empty() {
        let mut unsets = MemberRemoval::default();
        unset.iter().for_each(|path| unsets.note(path.elements()));
        unsets.apply(&mut value);
    }
    Facet::from_json(value)
}

fn merge(into: &mut Object, changes: &Object) {
    for (key, change) in changes {
        match (into.get_mut(key), change) {
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (Some(old), new) => old.clone_from(new),
            (None, new) => {
                into.insert(key.clone(), new.clone());
            }
        }
    }
}

/// The members to take away, as a tree: so that each object and list is gone through once,
/// however many of its members go, and all paths speak of the value as it was before.
#[derive(Default)]
struct MemberRemoval<'p> {
    /// Whether the value at this place goes itself.
    goes: bool,
    inside: HashMap<&'p PathElement, MemberRemoval<'p>>,
}

impl<'p> MemberRemoval<'p> {
    fn note(&mut self, path: &'p [PathElement]) {
        // No value is nested that deep, so nothing is at the end of a longer path.
        if path.is_empty() || path.len() > 2 * json::MAX_DEPTH {
            return;
        }
        let mut at = self;
        for element in path {
            at = at.inside.entry(element).or_default();
        }
        at.goes = true;
    }

    fn apply(&self, value: &mut Value) {
        let keeps = |element: &PathElement, value: &mut Value| match self.inside.get(element) {
            Some(unset) if unset.goes => false,
            Some(unset) => {
                unset.apply(value);
                true
            }
            None => true,
        };
        match value {
            Value::Object(object) => {
                object.retain(|key, value| keeps(&PathElement::Key(key.clone()), value));
            }
            Value::Array(array) => {
                let mut index = 0..;
                array.retain_mut(|value| {
                    let index = index.next().unwrap_or_default();
                    keeps(&PathElement::Index(index), value)
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(state: &str, unset: &str, expected: &str) {
        let read = |text: &str| json::read(text.as_bytes()).unwrap();
        let facet = Facet { state: Some(read(state)), ..Facet::new("a", "state", "") };
        let paths: Vec<Path> = json::from_value(read(unset)).unwrap();
        let state = rewritten(&facet, &Object::new(), &paths).unwrap().state;
        assert_eq!(state, Some(read(expected)));
    }

    #[test]
    fn paths_speak_of_the_value_before_anything_is_taken_away() {
        check(
            r#"{"a":1,"b":{"c":2,"d":3}}"#,
            r#"[["state","a"],["state","b","c"]]"#,
            r#"{"b":{"d":3}}"#,
        );
        check("[0,1,2,3]", r#"[["state",0],["state",2]]"#, "[1,3]");
        check(r#"[{"x":1,"y":2}]"#, r#"[["state",0,"x"],["state",0]]"#, "[]");
        check(
            r#"{"a":1}"#,
            r#"[["state","b"],["state","a","b"],["state",0],[],["nothing"]]"#,
            r#"{"a":1}"#,
        );
    }
}
