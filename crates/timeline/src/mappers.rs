use std::{collections::BTreeMap, fmt, sync::Arc};

use super::{Changes, Data, Delta, Event, SnapshotReason, Targets, world};
use crate::Result;

type Map = dyn Fn(&Event, &mut Changes<'_>) -> Result<()> + Send + Sync;

/// What events of each type change, and which of them ask for a snapshot.
///
/// Those of the document and its world are built in; an event of a type that is not here changes
/// nothing.
///
/// ```
/// use afterimage_timeline::{DeltaTarget, json::Path, Data, Event, Mappers, Timeline, TurnRecord};
///
/// let mappers = Mappers::default()
///     // Says what changes …
///     .with("rain", |event, changes| {
///         changes.set(DeltaTarget::WORLD, Path::of_keys(["weather"]), event.value("kind")?)
///     })
///     // … or changes the state itself: the deltas are those by which it differs.
///     .automatic("storm", |_, state| {
///         *state = Data::from_iter([("world", Data::from_iter([("weather", "storm")]))]);
///         Ok(())
///     });
/// let state = Data::from_iter([("world", Data::object())]);
/// let mut timeline = Timeline::builder("tale", state).mappers(mappers).build()?;
/// let rain = Event::new("rain", Data::from_iter([("kind", Data::from("drizzle"))]));
/// timeline.push(TurnRecord::new("weather").with_event(rain))?;
/// assert_eq!(timeline.state().to_string(), r#"{"world":{"weather":"drizzle"}}"#);
/// timeline.push(TurnRecord::new("weather").with_event(Event::new("storm", Data::Null)))?;
/// assert_eq!(timeline.state().to_string(), r#"{"world":{"weather":"storm"}}"#);
/// # Ok::<(), afterimage_timeline::Error>(())
/// ```
#[derive(Clone)]
pub struct Mappers {
    mappers: BTreeMap<String, Arc<Map>>,
    triggers: BTreeMap<String, SnapshotReason>,
}

/// What events come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedEvents {
    /// The changes, in order.
    pub deltas: Vec<Delta>,
    /// The types of events that have no mapper, and so change nothing.
    pub unmapped: Vec<String>,
}

impl Default for Mappers {
    fn default() -> Self {
        let mut mappers = Self::none();
        for (event_type, mapper) in world::MAPPERS {
            mappers = mappers.with(event_type, mapper);
        }
        for (event_type, reason) in world::TRIGGERS {
            mappers = mappers.snapshot_on(event_type, *reason);
        }
        mappers
    }
}

impl Mappers {
    /// No mapper and no trigger.
    pub fn none() -> Self {
        Self { mappers: BTreeMap::new(), triggers: BTreeMap::new() }
    }

    /// With another mapper for events of a type. O(log n) in the types.
    pub fn with(
        mut self,
        event_type: &str,
        mapper: impl Fn(&Event, &mut Changes<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.mappers.insert(event_type.to_owned(), Arc::new(mapper));
        self
    }

    /// With a function for events of a type that changes the state itself: the deltas are those by
    /// which it then differs. O(log n) in the types; each such event then costs a comparison of the
    /// state before it with the state after it.
    pub fn automatic(
        self,
        event_type: &str,
        change: impl Fn(&Event, &mut Data) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.with(event_type, move |event, changes| {
            let mut after = changes.state().clone();
            change(event, &mut after)?;
            changes.become_state(&after)
        })
    }

    /// With a snapshot after every turn that has an event of a type. O(log n) in the types.
    pub fn snapshot_on(mut self, event_type: &str, reason: SnapshotReason) -> Self {
        self.triggers.insert(event_type.to_owned(), reason);
        self
    }

    /// The types that have a mapper. O(n) for all of them.
    pub fn event_types(&self) -> impl Iterator<Item = &str> {
        self.mappers.keys().map(String::as_str)
    }

    /// What some events come to in a state, each in the state that those before it leave. The state
    /// stays as it is, and the deltas have no ids and turns yet. Runs in the time of the mappers;
    /// the copy of the state is shared.
    ///
    /// ```
    /// use afterimage_timeline::{Data, Event, Mappers, Targets, Timeline};
    ///
    /// let moved = Event::new("move", Data::from_iter([("zone", Data::from("harbour"))]));
    /// let sung = Event::new("song", Data::Null);
    /// let state = Timeline::empty_state();
    /// let mapped = Mappers::default().map(&[moved, sung], &state, &Targets::default())?;
    /// assert_eq!(mapped.deltas[0].path.to_string(), "/location");
    /// assert_eq!(mapped.unmapped, ["song"]);
    /// # Ok::<(), afterimage_timeline::Error>(())
    /// ```
    ///
    /// # Errors
    /// What a mapper refuses, with the event's place among `events`.
    pub fn map(&self, events: &[Event], state: &Data, targets: &Targets) -> Result<MappedEvents> {
        let mut changes = Changes::new(state.clone(), targets);
        let mut unmapped = Vec::new();
        for (index, event) in events.iter().enumerate() {
            changes.of_event(event);
            match self.mappers.get(event.event_type()) {
                Some(mapper) => {
                    mapper(event, &mut changes)
                        .map_err(|error| error.under(index).under("events"))?;
                }
                None => unmapped.push(event.event_type().to_owned()),
            }
        }
        Ok(MappedEvents { deltas: changes.into_deltas(), unmapped })
    }

    /// Why a turn with these events asks for a snapshot, if it does: the weightiest reason.
    /// O(events).
    pub fn reason(&self, events: &[Event]) -> Option<SnapshotReason> {
        let reasons = events.iter().filter_map(|event| self.triggers.get(event.event_type()));
        reasons.copied().max_by_key(|reason| reason.priority())
    }
}

impl fmt::Debug for Mappers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mappers")
            .field("mappers", &self.mappers.keys())
            .field("triggers", &self.triggers)
            .finish()
    }
}
