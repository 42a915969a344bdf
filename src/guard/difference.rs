use super::{Volatile, layout::place, rules::Section};
use crate::{
    export::{CountedLeaf, PrefixCounts},
    id::FacetId,
    json::{Object, ObjectExt, Path, PathElement, Value},
    request::{Request, ToolChange, differing_tool, tool_names},
};

crate::json::serialize_through_json!(FirstDifference);

/// Where a request first differs from the one before it, in the order of the cache, and who wrote
/// that.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
pub struct FirstDifference {
    /// What differs: `parameter:model`, `tool:NAME`, `system`, `message:INDEX`.
    pub owner: FacetId,
    /// What became of it.
    pub change: ChangeKind,
    /// The value that differs, in the request in the order of the cache.
    pub path: Path,
    /// The first value of a tool's definition that differs; empty where nothing else is.
    pub within: Path,
    /// The first byte that differs, in the string at the path; `None` where it is no string.
    pub offset: Option<usize>,
    /// What changes by itself there, in both requests.
    pub holds: Option<Volatile>,
    /// The role of a message, or its type where it has no role.
    role: Option<String>,
    /// The models, where these differ.
    models: Option<(String, String)>,
}

crate::json::name_enum! {
    /// What became of the part of a request that first differs.
    #[non_exhaustive]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ChangeKind {
        /// It says something else.
        Changed = "changed",
        /// It was not there before.
        Added = "added",
        /// It is no longer there, or not all of it.
        Removed = "removed",
        /// It stands elsewhere.
        Moved = "moved",
    }
}

impl FirstDifference {
    /// The first difference that a comparison found. `None` where the next request begins with the
    /// whole of the previous one.
    pub(super) fn of(
        (previous, next): (&Request, &Request),
        counts: &PrefixCounts,
        tools: &[ToolChange],
        order: [Section; 3],
    ) -> Option<Self> {
        let divergence = counts.report.divergence.as_ref()?;
        let (was, is) = (counts.previous.get(counts.same)?, counts.next.get(counts.same));
        let api = next.api();
        let rank = |leaf: &CountedLeaf| {
            let (section, index, part) = place(&leaf.path, api)?;
            Some((order.iter().position(|of| *of == section), index, part))
        };
        let is_there = is.filter(|is| rank(is) <= rank(was));
        let (leaf, change, request) = match is_there {
            None => (was, ChangeKind::Removed, previous),
            Some(is) if rank(is) < rank(was) => (is, ChangeKind::Added, next),
            Some(is) => (is, ChangeKind::Changed, next),
        };
        let texts = is_there.and_then(|is| Some((was.text.as_deref()?, is.text.as_deref()?)));
        let holds = texts
            .zip(divergence.offset)
            .and_then(|((was, is), offset)| Volatile::at(was, is, offset));
        let mut difference = Self {
            owner: "parameter:model".into(),
            change,
            path: leaf.path.iter().cloned().collect(),
            within: Path::default(),
            offset: divergence.offset.filter(|_| change == ChangeKind::Changed),
            holds,
            role: None,
            models: previous
                .model()
                .zip(next.model())
                .map(|(was, is)| (was.to_owned(), is.to_owned())),
        };
        let Some((section, index, _)) = place(&leaf.path, api) else { return Some(difference) };
        difference.models = None;
        match section {
            Section::Tools => difference.name_tool((previous, next), index, tools),
            Section::System => difference.owner = "system".into(),
            Section::Messages => {
                difference.owner = format!("message:{index}").into();
                difference.role = role(request, index);
            }
        }
        Some(difference)
    }

    /// Says which tool it is that differs at this place of the list.
    fn name_tool(
        &mut self,
        (previous, next): (&Request, &Request),
        index: usize,
        tools: &[ToolChange],
    ) {
        let names = |request: &Request| request.value().map(tool_names).unwrap_or_default();
        let (was, is) = (names(previous), names(next));
        let Some(name) = differing_tool(&was, &is, index) else { return };
        if was.get(index) != is.get(index) {
            self.change = match (was.contains(name), is.contains(name)) {
                (_, false) => ChangeKind::Removed,
                (false, true) => ChangeKind::Added,
                (true, true) if is.get(index).is_some() => ChangeKind::Moved,
                (true, true) => self.change,
            };
        }
        self.owner = format!("tool:{name}").into();
        if self.change == ChangeKind::Changed {
            let of = tools.iter().find(|change| change.name == *name);
            self.within = of.map(|change| change.path.clone()).unwrap_or_default();
        } else {
            (self.offset, self.holds) = (None, None);
        }
    }

    /// The difference in a sentence, without the stop at its end. O(length of the path).
    pub fn words(&self) -> String {
        let name = self.owner.as_str();
        let what = match (name.split_once(':'), &self.role) {
            (Some(("tool", tool)), _) => format!("tool `{tool}`"),
            (Some(("message", index)), Some(role)) => format!("message {index} ({role})"),
            (Some(("message", index)), None) => format!("message {index}"),
            (Some(("parameter", name)), _) => format!("the {name}"),
            _ => "the system prompt".to_owned(),
        };
        let is_part = place_in_message(&self.path);
        let mut words = match (self.change, &self.models) {
            (_, Some((was, is))) => format!("the model changed from `{was}` to `{is}`"),
            (ChangeKind::Added, _) if is_part => format!("{what} has more blocks than before"),
            (ChangeKind::Removed, _) if is_part => format!("{what} lost a block"),
            (ChangeKind::Added, _) => format!("{what} is new"),
            (ChangeKind::Removed, _) => format!("{what} is gone"),
            (ChangeKind::Moved, _) => format!("{what} stands elsewhere in the list of tools"),
            (ChangeKind::Changed, _) => match (self.member(), self.offset) {
                (Some(member), _) => format!("{what} changed its {member}"),
                (None, Some(offset)) => format!("{what} changed at byte {offset}"),
                (None, None) => format!("{what} changed"),
            },
        };
        if let Some(holds) = self.holds {
            words.push_str(": it holds ");
            words.push_str(holds.words());
        }
        words
    }

    /// The member of a tool's definition that differs.
    fn member(&self) -> Option<String> {
        let elements = self.within.elements();
        let elements = match elements {
            [PathElement::Key(key), rest @ ..] if key == "function" && !rest.is_empty() => rest,
            all => all,
        };
        let names: Vec<String> = elements
            .iter()
            .map(|element| match element {
                PathElement::Key(key) => key.clone(),
                PathElement::Index(index) => index.to_string(),
            })
            .collect();
        match names.as_slice() {
            [] => None,
            [alone] => Some(alone.clone()),
            _ => Some(format!("`{}`", names.join("."))),
        }
    }

    /// The wire form. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("owner", self.owner.as_str());
        object.put("change", self.change.as_str());
        object.put("path", self.path.to_string());
        if !self.within.elements().is_empty() {
            object.put("within", self.within.to_string());
        }
        object.put_some("byte", self.offset.map(|offset| offset as u64));
        object.put_some("holds", self.holds.map(Volatile::as_str));
        object.put("words", self.words());
        object.into()
    }
}

/// Whether a value is of a block of a message, and not the first one.
fn place_in_message(path: &Path) -> bool {
    matches!(path.elements(), [_, _, PathElement::Key(_), PathElement::Index(1..), ..])
}

fn role(request: &Request, index: usize) -> Option<String> {
    let body = request.value().ok()?;
    let message = body.get(request.api().conversation_key())?.as_array()?.get(index)?;
    let role = message.str_at("role").or_else(|| message.str_at("type"));
    role.map(str::to_owned)
}
