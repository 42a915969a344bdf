//! What differs between two documents, as people see it: entries, values and states.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::Hash,
};

use super::{
    blocks::{Block, BlockKind},
    delta::item_text,
    document::{Document, Section},
    lookup::key_of,
    names::{MergeRule, SectionKind, is_status, normal},
};

/// What differs, by section.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) added: Vec<Group>,
    pub(super) modified: Vec<Row>,
    pub(super) removed: Vec<Group>,
    pub(super) transitions: Vec<Row>,
    /// The titles of sections whose entries changed their place.
    pub(super) moved: Vec<String>,
}

/// A value before and after.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The section, and what is inside of it.
    pub(super) path: Vec<String>,
    pub(super) before: String,
    pub(super) after: String,
}

/// Entries of a section that come or go.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) title: String,
    /// Whether the section comes or goes with them.
    pub(super) is_whole: bool,
    /// The entries, each by its name and whole.
    pub(super) entries: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Form {
    Row,
    Item,
    #[default]
    Text,
    Code,
}

/// An entry: what is compared as a whole.
#[derive(Default)]
struct Unit {
    /// The headings over it.
    path: String,
    title: String,
    kind: Option<SectionKind>,
    form: Form,
    text: String,
    key: String,
    titles: Vec<String>,
    cells: Vec<String>,
}

pub(super) fn changes_between(a: &Document, b: &Document) -> Changes {
    let (old, new) = (units(a), units(b));
    let mut open = Open { gone: vec![true; old.len()], come: vec![true; new.len()] };
    let mut changes = Changes::default();
    open.pairs(&old, &new, |unit| (&unit.path, &unit.text));
    // What stands in another section now has moved.
    let moved = open.pairs(&old, &new, |unit| &unit.text);
    let mut noted = HashSet::new();
    let titles = moved.into_iter().map(|(_, unit)| &unit.title);
    changes.moved.extend(titles.filter(|title| noted.insert(*title)).cloned());
    header_changes(a, b, &mut changes);
    open.replaced_sections(&old, &new, &mut changes);
    for (before, after) in open.pairs(&old, &new, |unit| (&unit.path, unit.form, &unit.key)) {
        change(before, after, &mut changes);
    }
    let (paths_of_a, paths_of_b) = (paths(a), paths(b));
    let known = |paths: &[(String, String)]| -> HashSet<String> {
        paths.iter().map(|(path, _)| path.clone()).collect()
    };
    let (in_a, in_b) = (known(&paths_of_a), known(&paths_of_b));
    changes.added = groups(&new, &open.come, &paths_of_b, |path| !in_a.contains(path));
    changes.removed = groups(&old, &open.gone, &paths_of_a, |path| !in_b.contains(path));
    changes
}

/// The sections' paths, as they are compared, and titles.
fn paths(document: &Document) -> Vec<(String, String)> {
    let sections = document.sections().iter().enumerate();
    let of = |(index, section): (usize, &Section)| {
        (normal(&document.path_of(index)), section.title.clone())
    };
    sections.filter(|(_, section)| section.level > 0).map(of).collect()
}

fn units(document: &Document) -> Vec<Unit> {
    let mut units = Vec::new();
    for (index, section) in document.sections().iter().enumerate() {
        let (path, kind) = (normal(&document.path_of(index)), section.kind());
        for block in document.blocks_of(section) {
            units.extend(unit(document, (section, kind), &path, block));
        }
    }
    units
}

fn unit(
    document: &Document,
    (section, kind): (&Section, Option<SectionKind>),
    path: &str,
    block: &Block,
) -> Option<Unit> {
    let raw = document.text_of(block);
    let mut unit = Unit {
        path: path.to_owned(),
        title: section.title.clone(),
        kind,
        text: raw.trim().to_owned(),
        ..Unit::default()
    };
    match &block.kind {
        BlockKind::Heading { .. } | BlockKind::TableHead { .. } => return None,
        BlockKind::TableRow { cells, .. } => {
            unit.form = Form::Row;
            unit.cells.clone_from(cells);
            unit.titles = document.titles_over(block).to_vec();
            let at = usize::from(kind == Some(SectionKind::Breadcrumbs));
            unit.key = cells.get(at).map(|cell| normal(cell)).unwrap_or_default();
        }
        BlockKind::ListItem { .. } => {
            unit.form = Form::Item;
            unit.text = item_text(&raw);
            unit.key = normal(key_of(&unit.text));
        }
        BlockKind::Code => unit.form = Form::Code,
        _ => {}
    }
    Some(unit)
}

/// The entries that have no partner yet.
struct Open {
    gone: Vec<bool>,
    come: Vec<bool>,
}

impl Open {
    /// Pairs entries that are equal by `name`, in their order.
    fn pairs<'u, K: Hash + Eq>(
        &mut self,
        old: &'u [Unit],
        new: &'u [Unit],
        name: impl Fn(&'u Unit) -> K,
    ) -> Vec<(&'u Unit, &'u Unit)> {
        let mut places: HashMap<K, Vec<(&Unit, &mut bool)>> = HashMap::new();
        let gone = old.iter().zip(&mut self.gone).filter(|(_, gone)| **gone);
        for place in gone.collect::<Vec<_>>().into_iter().rev() {
            places.entry(name(place.0)).or_default().push(place);
        }
        let mut pairs = Vec::new();
        for (unit, come) in new.iter().zip(&mut self.come).filter(|(_, come)| **come) {
            if let Some((from, gone)) = places.get_mut(&name(unit)).and_then(Vec::pop) {
                (*gone, *come) = (false, false);
                pairs.push((from, unit));
            }
        }
        pairs
    }

    /// Sections that are replaced as a whole are one change each.
    fn replaced_sections(&mut self, old: &[Unit], new: &[Unit], changes: &mut Changes) {
        let mut sections: BTreeMap<&str, [Vec<(&Unit, &mut bool)>; 2]> = BTreeMap::new();
        let gone = old.iter().zip(&mut self.gone).map(|unit| (0, unit));
        let come = new.iter().zip(&mut self.come).map(|unit| (1, unit));
        for (side, (unit, open)) in gone.chain(come).filter(|(_, (_, open))| **open) {
            if unit.kind.map(SectionKind::merge_rule) == Some(MergeRule::Replace) {
                let sides = sections.entry(&unit.path).or_default();
                if let Some(units) = sides.get_mut(side) {
                    units.push((unit, open));
                }
            }
        }
        let take = |units: Vec<(&Unit, &mut bool)>| -> String {
            let texts = units.into_iter().map(|(unit, open)| {
                *open = false;
                unit.text.as_str()
            });
            texts.collect::<Vec<_>>().join("; ")
        };
        for [gone, come] in sections.into_values() {
            if let (false, Some((unit, _))) = (gone.is_empty(), come.first()) {
                let path = vec![unit.title.clone()];
                let (before, after) = (take(gone), take(come));
                changes.modified.push(Row { path, before, after });
            }
        }
    }
}

/// The fields that say nothing but which checkpoint it is, which the delta's own header tells.
const OF_THE_CHAIN: [&str; 3] = ["checkpoint", "created", "parent"];

fn header_changes(a: &Document, b: &Document, changes: &mut Changes) {
    let mut values: HashMap<&str, [Option<&str>; 2]> = HashMap::new();
    let mut keys = Vec::new();
    for (side, document) in [a, b].into_iter().enumerate() {
        for field in document.front_matter().iter().flat_map(|front| &front.fields) {
            let values = values.entry(&field.key).or_insert_with(|| {
                keys.push(field.key.as_str());
                [None; 2]
            });
            if let Some(value) = values.get_mut(side) {
                value.get_or_insert(&field.value);
            }
        }
    }
    for key in keys.into_iter().filter(|key| !OF_THE_CHAIN.contains(key)) {
        let values = values.get(key).copied().unwrap_or_default();
        let [before, after] = values.map(|value| value.unwrap_or_default().to_owned());
        if before != after {
            changes.modified.push(Row { path: vec![key.to_owned()], before, after });
        }
    }
}

fn change(before: &Unit, after: &Unit, changes: &mut Changes) {
    let name = || match after.form {
        Form::Row => entry_name(after),
        Form::Item => key_of(&after.text).to_owned(),
        Form::Text | Form::Code => String::new(),
    };
    let path = |parts: Vec<String>| {
        let parts = std::iter::once(after.title.clone()).chain(parts);
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>()
    };
    if after.form == Form::Row && before.titles == after.titles {
        for (index, title) in after.titles.iter().enumerate() {
            let cell = |unit: &Unit| unit.cells.get(index).cloned().unwrap_or_default();
            let (old, new) = (cell(before), cell(after));
            if old == new {
                continue;
            }
            if is_status(title) {
                changes.transitions.push(Row { path: vec![name()], before: old, after: new });
            } else {
                let path = path(vec![name(), title.clone()]);
                changes.modified.push(Row { path, before: old, after: new });
            }
        }
        return;
    }
    if let (Some((old_name, old)), Some((new_name, new))) =
        (phase(&before.text), phase(&after.text))
        && after.form == Form::Item
        && old_name == new_name
    {
        let (before, after) = (old.to_owned(), new.to_owned());
        changes.transitions.push(Row { path: vec![name()], before, after });
        return;
    }
    let (old, new) = without_key(before, after);
    changes.modified.push(Row { path: path(vec![name()]), before: old, after: new });
}

/// What a row is about: the cell beside an id, else its first.
fn entry_name(unit: &Unit) -> String {
    let is_id =
        |title: &String| matches!(normal(title).as_str(), "id" | "#" | "nr" | "key" | "type");
    let first = usize::from(unit.titles.first().is_some_and(is_id) && unit.cells.len() > 2);
    unit.cells.get(first).cloned().unwrap_or_default()
}

/// An entry of a list of phases: what is before its last arrow, and the state behind it.
fn phase(text: &str) -> Option<(&str, &str)> {
    let (name, state) = text.rsplit_once('→')?;
    let state = state.trim();
    (!text.contains('\n') && !state.is_empty() && state.chars().count() <= 40)
        .then_some((name.trim(), state))
}

/// The texts of two entries behind the key that they share.
fn without_key(before: &Unit, after: &Unit) -> (String, String) {
    let key = key_of(&after.text);
    let both = |text: &str| text.strip_prefix(key).map(|rest| rest.trim_start().to_owned());
    match (both(&before.text), both(&after.text)) {
        (Some(old), Some(new))
            if after.form == Form::Item && !old.is_empty() && !new.is_empty() =>
        {
            let plain = |text: String| text.trim_start_matches([':', ' ']).to_owned();
            (plain(old), plain(new))
        }
        _ => (before.text.clone(), after.text.clone()),
    }
}

fn groups(
    units: &[Unit],
    open: &[bool],
    paths: &[(String, String)],
    is_whole: impl Fn(&str) -> bool,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let start = |path: &'_ str, title: &str| Group {
        title: title.to_owned(),
        is_whole: is_whole(path),
        entries: Vec::new(),
    };
    for (path, title) in paths.iter().filter(|(path, _)| is_whole(path)) {
        places.entry(path).or_insert(groups.len());
        groups.push(start(path, title));
    }
    for (unit, _) in units.iter().zip(open).filter(|(_, open)| **open) {
        let at = *places.entry(&unit.path).or_insert_with(|| {
            groups.push(start(&unit.path, &unit.title));
            groups.len() - 1
        });
        let entry = match unit.form {
            Form::Row => (entry_name(unit), unit.cells.join(" | ")),
            _ => (unit.text.clone(), unit.text.clone()),
        };
        if let Some(group) = groups.get_mut(at) {
            group.entries.push(entry);
        }
    }
    groups
}
