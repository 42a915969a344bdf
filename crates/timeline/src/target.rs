use crate::{
    DeltaTarget, Error, ErrorKind, Result,
    json::{self, Fields, Path, PathElement, Value},
};

crate::json::serde_through_json!(Targets);

/// The table from a delta's target to its place in the state.
///
/// The ten targets of the document are built in; [`Targets::with`] adds others, or gives one
/// another place.
///
/// ```
/// use afterimage_timeline::{DeltaTarget, json::Path, Targets};
///
/// let targets = Targets::default().with("faction", Path::of_keys(["world", "factions"]));
/// assert_eq!(targets.place(&DeltaTarget::INVENTORY)?.to_string(), "/player/inventory");
/// assert_eq!(targets.place(&"faction".into())?.to_string(), "/world/factions");
/// assert!(targets.place(&"moon".into()).is_err());
/// # Ok::<(), afterimage_timeline::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Targets(Vec<(DeltaTarget, Path)>);

impl Default for Targets {
    fn default() -> Self {
        let place = |target, keys: &[&str]| (target, Path::of_keys(keys.iter().copied()));
        Self(vec![
            place(DeltaTarget::PLAYER, &["player"]),
            place(DeltaTarget::NPC, &["npcs"]),
            place(DeltaTarget::WORLD, &["world"]),
            place(DeltaTarget::SCENE, &["scene"]),
            place(DeltaTarget::QUEST, &["quests"]),
            place(DeltaTarget::TIME, &["gameTime"]),
            place(DeltaTarget::LOCATION, &["world", "locations"]),
            place(DeltaTarget::INVENTORY, &["player", "inventory"]),
            // Relationships are kept with the characters.
            place(DeltaTarget::RELATIONSHIP, &["npcs"]),
            // Whose knowledge it is, the delta's path says.
            place(DeltaTarget::KNOWLEDGE, &[]),
        ])
    }
}

impl Targets {
    /// A table in which every path begins at the root.
    pub(super) fn none() -> Self {
        Self(vec![(DeltaTarget::KNOWLEDGE, Path::default())])
    }

    /// The table with one more target, or with another place for one that it has. O(targets).
    pub fn with(mut self, target: impl Into<DeltaTarget>, place: Path) -> Self {
        let target = target.into();
        match self.0.iter_mut().find(|(known, _)| *known == target) {
            Some((_, known)) => *known = place,
            None => self.0.push((target, place)),
        }
        self
    }

    /// The place of a target. O(targets).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for a target that the table does not have.
    pub fn place(&self, target: &DeltaTarget) -> Result<&Path> {
        self.find(target).ok_or_else(|| {
            let known: Vec<_> = self.0.iter().map(|(known, _)| known.as_str()).collect();
            let message =
                format!("unknown target {target:?}: expected one of {}", known.join(", "));
            Error::new(ErrorKind::Shape, message)
        })
    }

    pub(super) fn find(&self, target: &DeltaTarget) -> Option<&Path> {
        self.0.iter().find(|(known, _)| known == target).map(|(_, place)| place)
    }

    /// The target that stands for most of `path`, and what of the path is left; the first in the
    /// table where several do. A path that is in no place belongs to a target at the root, and to
    /// `knowledge` where there is none. O(targets).
    pub fn of_path<'p>(&self, path: &'p [PathElement]) -> (DeltaTarget, &'p [PathElement]) {
        let mut best: Option<(&DeltaTarget, &Path)> = None;
        for (target, place) in &self.0 {
            let longer =
                best.is_none_or(|(_, best)| place.elements().len() > best.elements().len());
            if longer && path.starts_with(place.elements()) {
                best = Some((target, place));
            }
        }
        best.map_or((DeltaTarget::KNOWLEDGE, path), |(target, place)| {
            (target.clone(), path.get(place.elements().len()..).unwrap_or_default())
        })
    }

    /// The table as JSON: an object of JSON pointers. O(size).
    pub fn to_json(&self) -> Value {
        let place = |(target, place): &(DeltaTarget, Path)| {
            (target.to_string(), Value::from(place.to_string()))
        };
        Value::Object(self.0.iter().map(place).collect())
    }

    /// The built-in table with the places that `value` names. O(targets).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] unless it is an object of JSON pointers.
    pub fn from_json(value: Value) -> Result<Self> {
        let places = Fields::of(value, "targets")?.rest();
        places.iter().try_fold(Self::default(), |targets, (target, place)| {
            let pointer = place.as_str().map(Path::from_pointer);
            let pointer = pointer
                .unwrap_or_else(|| Err(json::Error::expected("a JSON pointer", place.kind())));
            Ok(targets.with(target, pointer.map_err(|error| error.under(target))?))
        })
    }
}
