//! What the events of the document's world change, and which of them ask for a snapshot.

use super::{Changes, Data, Event, SnapshotReason};
use crate::{
    DeltaTarget, Error, Result,
    json::{Path, PathElement, Value},
};

type Mapper = fn(&Event, &mut Changes<'_>) -> Result<()>;

/// The types with their mappers. The members that each reads of `data` are in `docs/timeline.md`.
pub(super) const MAPPERS: &[(&str, Mapper)] = &[
    ("move", moved),
    ("stress_taken", stress_taken),
    ("knowledge_gain", knowledge_gain),
    ("create_advantage", create_advantage),
    ("aspect_removed", aspect_removed),
    ("relationship_change", relationship_change),
    ("item_gain", item_gain),
    ("item_loss", item_loss),
    ("quest_start", quest_start),
    ("quest_update", quest_update),
    ("quest_complete", quest_complete),
    ("time_pass", time_pass),
    ("scene_change", scene_change),
    ("scene_end", |_, _| Ok(())),
    ("conflict_start", conflict_start),
    ("conflict_end", conflict_end),
    ("milestone", |_, _| Ok(())),
    ("session_pause", |_, _| Ok(())),
    ("session_end", |_, _| Ok(())),
    ("save", |_, _| Ok(())),
];

pub(super) const TRIGGERS: &[(&str, SnapshotReason)] = &[
    ("scene_end", SnapshotReason::SceneEnd),
    ("scene_change", SnapshotReason::SceneEnd),
    ("conflict_end", SnapshotReason::ConflictEnd),
    ("quest_complete", SnapshotReason::Milestone),
    ("milestone", SnapshotReason::Milestone),
    ("session_pause", SnapshotReason::SessionEnd),
    ("session_end", SnapshotReason::SessionEnd),
    ("save", SnapshotReason::Manual),
];

fn keys<const N: usize>(keys: [&str; N]) -> Path {
    Path::of_keys(keys)
}

fn moved(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    if event.data("location").is_some() {
        changes.set(DeltaTarget::PLAYER, keys(["location", "id"]), event.value("location")?)?;
    }
    changes.set(DeltaTarget::PLAYER, keys(["location", "zone"]), event.value("zone")?)
}

fn stress_taken(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    let (who, track) = (event.text("target")?, event.text("track")?);
    let number = event.data("box").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let number = number.ok_or_else(|| {
        Error::expected("the number of a box", "something else").under("box").under("data")
    })?;
    let (target, list) = match who {
        "player" => (DeltaTarget::PLAYER, keys(["stress", track])),
        npc => (DeltaTarget::NPC, keys([npc, "stress", track])),
    };
    // A track as long as it has to be.
    let boxes = changes.value(&target, &list).and_then(Data::as_array).map_or(0, super::List::len);
    for _ in boxes..=number {
        changes.append(target.clone(), list.clone(), false)?;
    }
    changes.set(target, list.child(PathElement::Index(number)), true)
}

fn knowledge_gain(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    let category = event.text("category")?;
    let path = match event.data("who").and_then(Value::as_str) {
        None | Some("player") => keys(["player", "knowledge", category]),
        Some(npc) => keys(["npcs", npc, "knowledge", category]),
    };
    changes.append(DeltaTarget::KNOWLEDGE, path, event.value("item")?)
}

fn create_advantage(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    changes.append(DeltaTarget::SCENE, keys(["aspects"]), event.value("aspect")?)
}

fn aspect_removed(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    let name = event.value("name")?;
    changes
        .remove(DeltaTarget::SCENE, keys(["aspects"]), |aspect| aspect.get("name") == Some(&name))
}

fn relationship_change(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    let path = keys([event.text("npc")?, "relationship"]);
    changes.add(DeltaTarget::RELATIONSHIP, path, amount(event)?)
}

fn item_gain(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    changes.append(DeltaTarget::INVENTORY, Path::default(), event.value("item")?)
}

fn item_loss(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    let item = event.value("item")?;
    let is_it = |found: &Data| *found == item || found.get("id") == Some(&item);
    changes.remove(DeltaTarget::INVENTORY, Path::default(), is_it)
}

fn quest_start(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    changes.set(DeltaTarget::QUEST, keys([event.text("questId")?]), event.value("quest")?)
}

fn quest_update(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    members(event, changes, &DeltaTarget::QUEST, &keys([event.text("questId")?]))
}

fn quest_complete(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    changes.set(DeltaTarget::QUEST, keys([event.text("questId")?, "status"]), "completed")
}

fn time_pass(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    if event.data("changes").is_some() {
        return members(event, changes, &DeltaTarget::TIME, &Path::default());
    }
    changes.add(DeltaTarget::TIME, keys(["minutes"]), amount(event)?)
}

fn scene_change(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    changes.set(DeltaTarget::SCENE, Path::default(), event.value("scene")?)
}

fn conflict_start(event: &Event, changes: &mut Changes<'_>) -> Result<()> {
    changes.set(DeltaTarget::SCENE, keys(["conflict"]), event.value("conflict")?)
}

fn conflict_end(_: &Event, changes: &mut Changes<'_>) -> Result<()> {
    changes.delete(DeltaTarget::SCENE, keys(["conflict"]))
}

fn amount(event: &Event) -> Result<i64> {
    let amount = event.value("amount")?;
    let number = amount.as_number().and_then(crate::json::Number::as_i64);
    number.ok_or_else(|| Error::expected("an integer", amount.kind()).under("amount").under("data"))
}

/// Sets each member of `data.changes`.
fn members(
    event: &Event,
    changes: &mut Changes<'_>,
    target: &DeltaTarget,
    path: &Path,
) -> Result<()> {
    let wanted = event.value("changes")?;
    let Data::Object(wanted) = &wanted else {
        return Err(Error::expected("an object", wanted.kind()).under("changes").under("data"));
    };
    for (key, value) in wanted.iter() {
        changes.set(target.clone(), path.child(key), value.clone())?;
    }
    Ok(())
}
