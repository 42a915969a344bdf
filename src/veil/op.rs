use std::sync::Arc;

use super::Facet;
use crate::{
    Error, ErrorKind, Result,
    id::FacetId,
    json::{Fields, Object, ObjectExt, Path, PathElement, Value, serde_through_json},
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
    /// else, `null` included, replaces what was there. The id cannot change.
    Rewrite {
        /// The facet to change.
        id: FacetId,
        /// The new members.
        changes: Object,
        /// Members to take away, by path; those that are not there are passed over.
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

    /// The wire form.
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

    /// Loads the wire form. The id of a rewrite or removal may be spelled `facetId`.
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
                let unset = fields.array("unset")?.unwrap_or_default();
                let unset = unset.iter().map(Path::from_json).collect::<Result<_>>()?;
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
    for path in unset {
        remove(&mut value, path.elements());
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

fn remove(value: &mut Value, path: &[PathElement]) {
    match (path, value) {
        ([PathElement::Key(key)], Value::Object(object)) => {
            object.shift_remove(key);
        }
        ([PathElement::Index(index)], Value::Array(array)) if *index < array.len() => {
            array.remove(*index);
        }
        ([PathElement::Key(key), rest @ ..], Value::Object(object)) => {
            if let Some(inner) = object.get_mut(key) {
                remove(inner, rest);
            }
        }
        ([PathElement::Index(index), rest @ ..], Value::Array(array)) => {
            if let Some(inner) = array.get_mut(*index) {
                remove(inner, rest);
            }
        }
        _ => {}
    }
}
