//! What differs between two documents, as people see it: entries, values and states.

use std::collections::{HashMap, HashSet};

use super::{
    blocks::{Block, BlockKind},
    delta::item_text,
    document::{Document, Section},
    front_matter::Field,
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
    /// Rows, each with the index of the cell that says what it is about.
    pub(super) rows: Vec<(usize, Vec<String>)>,
    pub(super) items: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    Row,
    Item,
    Text,
    Code,
}

impl Group {
    /// The entries, each by its name and whole.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, String)> {
        let rows = self.rows.iter().map(|(at, cells)| {
            let name = cells.get(*at).filter(|name| !name.is_empty()).or(cells.first());
            (name.cloned().unwrap_or_default(), cells.join(" | "))
        });
        rows.chain(self.items.iter().map(|item| (item.clone(), item.clone())))
    }
}

/// An entry: what is compared as a whole.
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
    let (mut gone, mut come) = (vec![true; old.len()], vec![true; new.len()]);
    let mut changes = Changes::default();
    pair_equal(&old, &new, &mut gone, &mut come, |unit| (&unit.path, &unit.text));
    // What stands in another section now has moved.
    let moved = pair_equal(&old, &new, &mut gone, &mut come, |unit| ("", &unit.text));
    let mut noted = HashSet::new();
    changes.moved.extend(moved.into_iter().filter(|title| noted.insert(title.clone())));
    header_changes(a, b, &mut changes);
    replaced_sections(&old, &new, &mut gone, &mut come, &mut changes);
    modified(&old, &new, &mut gone, &mut come, &mut changes);
    let (paths_of_a, paths_of_b) = (paths(a), paths(b));
    let known = |paths: &[(String, String)]| -> HashSet<String> {
        paths.iter().map(|(path, _)| path.clone()).collect()
    };
    let (in_a, in_b) = (known(&paths_of_a), known(&paths_of_b));
    changes.added = groups(&new, &come, &paths_of_b, |path| !in_a.contains(path));
    changes.removed = groups(&old, &gone, &paths_of_a, |path| !in_b.contains(path));
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
        form: Form::Text,
        text: raw.trim().to_owned(),
        key: String::new(),
        titles: Vec::new(),
        cells: Vec::new(),
    };
    match &block.kind {
        BlockKind::Heading { .. } | BlockKind::TableHead { .. } => return None,
        BlockKind::TableRow { cells, head } => {
            unit.form = Form::Row;
            unit.cells.clone_from(cells);
            if let Some(Block { kind: BlockKind::TableHead { cells }, .. }) =
                document.blocks().get(*head)
            {
                unit.titles.clone_from(cells);
            }
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

/// Pairs entries that are equal by `name`, in their order; answers with the sections of the pairs.
fn pair_equal<'u>(
    old: &'u [Unit],
    new: &'u [Unit],
    gone: &mut [bool],
    come: &mut [bool],
    name: impl Fn(&'u Unit) -> (&'u str, &'u str),
) -> Vec<String> {
    let mut places: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    for (index, unit) in old.iter().enumerate().rev() {
        if gone.get(index) == Some(&true) {
            places.entry(name(unit)).or_default().push(index);
        }
    }
    let mut titles = Vec::new();
    for (unit, come) in new.iter().zip(come.iter_mut()).filter(|(_, come)| **come) {
        let from = places.get_mut(&name(unit)).and_then(Vec::pop);
        if let Some(gone) = from.and_then(|from| gone.get_mut(from)) {
            (*gone, *come) = (false, false);
            titles.push(unit.title.clone());
        }
    }
    titles
}

/// The fields that say nothing but which checkpoint it is, which the delta's own header tells.
const OF_THE_CHAIN: [&str; 3] = ["checkpoint", "created", "parent"];

fn header_changes(a: &Document, b: &Document, changes: &mut Changes) {
    let fields = |document: &'_ Document| -> Vec<Field> {
        document.front_matter().map_or(Vec::new(), |front| front.fields().to_vec())
    };
    let (old, new) = (fields(a), fields(b));
    let mut values: HashMap<&str, [Option<&str>; 2]> = HashMap::new();
    let mut keys = Vec::new();
    for (side, field) in
        old.iter().map(|field| (0, field)).chain(new.iter().map(|field| (1, field)))
    {
        let values = values.entry(&field.key).or_insert_with(|| {
            keys.push(field.key.as_str());
            [None; 2]
        });
        if let Some(value) = values.get_mut(side) {
            value.get_or_insert(&field.value);
        }
    }
    for key in keys.into_iter().filter(|key| !OF_THE_CHAIN.contains(key)) {
        let [before, after] =
            values.get(key).copied().unwrap_or_default().map(Option::unwrap_or_default);
        if before != after {
            let (before, after) = (before.to_owned(), after.to_owned());
            changes.modified.push(Row { path: vec![key.to_owned()], before, after });
        }
    }
}

/// Sections that are replaced as a whole are one change each.
fn replaced_sections(
    old: &[Unit],
    new: &[Unit],
    gone: &mut [bool],
    come: &mut [bool],
    changes: &mut Changes,
) {
    let mut order: Vec<&Unit> = Vec::new();
    let mut places: HashMap<&str, [Vec<usize>; 2]> = HashMap::new();
    let replaced =
        |unit: &&Unit| unit.kind.map(SectionKind::merge_rule) == Some(MergeRule::Replace);
    for (index, unit) in old.iter().enumerate().filter(|(_, unit)| replaced(unit)) {
        let [of_old, _] = places.entry(&unit.path).or_insert_with(|| {
            order.push(unit);
            Default::default()
        });
        of_old.extend((gone.get(index) == Some(&true)).then_some(index));
    }
    for (index, unit) in new.iter().enumerate().filter(|(index, _)| come.get(*index) == Some(&true))
    {
        if let Some([_, of_new]) = places.get_mut(unit.path.as_str()) {
            of_new.push(index);
        }
    }
    let take = |units: &[Unit], at: &[usize], open: &mut [bool]| -> String {
        let mut texts = Vec::with_capacity(at.len());
        for index in at {
            if let (Some(unit), Some(open)) = (units.get(*index), open.get_mut(*index)) {
                *open = false;
                texts.push(unit.text.as_str());
            }
        }
        texts.join("; ")
    };
    for unit in order {
        let Some([of_old, of_new]) = places.get(unit.path.as_str()) else { continue };
        if !of_old.is_empty() && !of_new.is_empty() {
            let path = vec![unit.title.clone()];
            let (before, after) = (take(old, of_old, gone), take(new, of_new, come));
            changes.modified.push(Row { path, before, after });
        }
    }
}

/// Pairs what is left by section, form and key.
fn modified(
    old: &[Unit],
    new: &[Unit],
    gone: &mut [bool],
    come: &mut [bool],
    changes: &mut Changes,
) {
    let mut places: HashMap<(&str, Form, &str), Vec<usize>> = HashMap::new();
    for (index, unit) in old.iter().enumerate().rev() {
        if gone.get(index) == Some(&true) {
            places.entry((&unit.path, unit.form, &unit.key)).or_default().push(index);
        }
    }
    for (unit, come) in new.iter().zip(come.iter_mut()).filter(|(_, come)| **come) {
        let from = places.get_mut(&(unit.path.as_str(), unit.form, unit.key.as_str()));
        let Some(index) = from.and_then(Vec::pop) else { continue };
        if let (Some(before), Some(gone)) = (old.get(index), gone.get_mut(index)) {
            (*gone, *come) = (false, false);
            change(before, unit, changes);
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
        rows: Vec::new(),
        items: Vec::new(),
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
        let Some(group) = groups.get_mut(at) else { continue };
        if unit.form == Form::Row {
            let is_key = |cell: &String| normal(cell) == unit.key;
            group.rows.push((unit.cells.iter().position(is_key).unwrap_or(0), unit.cells.clone()));
        } else {
            group.items.push(unit.text.clone());
        }
    }
    groups
}
