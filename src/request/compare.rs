use std::borrow::Cow;

use super::{CacheBreak, CacheFrom, Request, cache_break::breaks};
use crate::{
    Result,
    export::{Divergence, PrefixReport, PrefixRules, prefix_report},
    hud::Owner,
    id::FacetId,
    json::{Object, Path, PathElement, Value},
    tokens::TokenCounter,
    transcript::{Api, CONVERSATION},
    veil::is_cache_mark,
};

/// What differs between two requests, and what of the second is billed again.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestDiff {
    /// The unchanged prefix, in the order of providers' caches: the model, the tools, the system
    /// prompt, the messages. What is cached of it ends where one of the `breaks` takes the cache.
    pub prefix: PrefixReport,
    /// The tools that differ.
    pub tools: Vec<ToolChange>,
    /// The parameters that differ, the model among them.
    pub parameters: Vec<ParameterChange>,
    /// What takes the cache from text that is the same.
    pub breaks: Vec<CacheBreak>,
    /// The tool that differs first, where the first difference is in the list of tools.
    first_tool: Option<String>,
}

/// A tool definition that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolChange {
    /// The name of the tool.
    pub name: String,
    /// The definition before; `None` where the tool is new.
    pub previous: Option<Value>,
    /// The definition now; `None` where the tool is gone.
    pub next: Option<Value>,
    /// The first value of the definition that differs; empty where one has none.
    pub path: Path,
}

/// A parameter that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterChange {
    /// Its name.
    pub name: String,
    /// Its value before; `None` where it was not set.
    pub previous: Option<Value>,
    /// Its value now; `None` where it is not set.
    pub next: Option<Value>,
}

/// Compares a request with the one before it. O(both requests), and counts what differs.
///
/// Parses both bodies, and counts each string of `next` once.
///
/// # Errors
/// Those of [`Request::in_cache_order`].
pub fn compare(
    previous: &Request,
    next: &Request,
    counter: &dyn TokenCounter,
    rules: PrefixRules,
) -> Result<RequestDiff> {
    let (was, is) = (previous.as_cached()?, next.as_cached()?);
    let changes = changes(previous, next)?;
    let mut prefix = prefix_report(&was, &is, counter, rules);
    let tokens = |key: &str| is.root().get(key).map_or(0, |part| part.tokens(counter));
    let served = match changes.breaks.iter().map(|of| of.from).min() {
        None => prefix.unchanged,
        Some(CacheFrom::Start) => 0,
        Some(CacheFrom::System) => tokens("tools"),
        Some(CacheFrom::Messages) => {
            tokens("tools").saturating_add(tokens(next.api().system_key()))
        }
    };
    // A transcript does not hold all marks of the requests.
    let is_whole = previous.provenance().lacks().is_empty();
    let is_unmarked = rules.needs_marks && is_whole && next.api() == Api::Messages;
    let served = if is_unmarked && !is_marked(previous.value()?) { 0 } else { served };
    prefix.cached = rules.cached(prefix.unchanged.min(served));
    Ok(RequestDiff::new(prefix, changes))
}

/// The names of a request's tools, in order.
pub(crate) fn tool_names(request: &Value) -> Vec<String> {
    let tools = request.as_object().map(tool_list).unwrap_or_default();
    tools.into_iter().map(|tool| tool_name(tool).to_owned()).collect()
}

/// The tool that makes two lists of tools differ at an index: the one that stood there and is gone,
/// else the one that stands there now, or the last that stood there. O(tools).
pub(crate) fn differing_tool<'t>(
    was: &'t [String],
    is: &'t [String],
    index: usize,
) -> Option<&'t String> {
    let (before, after) = (was.get(index), is.get(index));
    before.filter(|name| after.is_none() || !is.contains(name)).or(after)
}

/// The tool that differs first, where the first difference is in the list of tools.
fn first_tool(divergence: &Divergence, was: &[String], is: &[String]) -> Option<String> {
    use PathElement::{Index, Key};
    let index = match divergence.path.elements() {
        [Key(key), ..] if key == "model" => return None,
        [Key(tools), Index(_), Key(group), Index(index), ..]
            if tools == "tools" && GROUPS.contains(&group.as_str()) =>
        {
            *index
        }
        [Key(tools), Index(index), ..] if tools == "tools" => *index,
        [Key(config), Key(_), Index(index), ..] if config == TOOL_CONFIG => *index,
        // What stands behind the tools differs first only where the last of them are gone.
        _ if was.len() > is.len() => is.len(),
        _ => return None,
    };
    differing_tool(was, is, index).cloned()
}

/// What differs between two requests besides their texts.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) tools: Vec<ToolChange>,
    /// The names of the tools before and now, where tools differ.
    pub(crate) tool_names: [Vec<String>; 2],
    pub(crate) parameters: Vec<ParameterChange>,
    pub(crate) breaks: Vec<CacheBreak>,
}

/// The tools and the parameters that differ, and what of it takes the cache.
pub(crate) fn changes(previous: &Request, next: &Request) -> Result<Changes> {
    let parameters = ParameterChange::between(&previous.parameters()?, &next.parameters()?);
    let breaks = breaks(previous, next, &parameters)?;
    let (was, is) = (previous.value()?, next.value()?);
    let tools = tools(was, is);
    let tool_names = [tool_names(was), tool_names(is)];
    Ok(Changes { tools, tool_names, parameters, breaks })
}

/// Content whose words are the same and whose JSON differs: a text became a list of blocks or the
/// other way round, or a mark for the cache came, went or changed. Providers treat both forms
/// alike; a proxy between may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReshapedContent {
    /// What holds it: `system`, `tool:NAME`, or `message:INDEX`.
    pub owner: FacetId,
    /// The role of the message, where it has one.
    pub role: Option<String>,
    /// How its form differs.
    pub change: FormChange,
}

crate::json::name_enum! {
    /// How two forms of one content differ.
    #[non_exhaustive]
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FormChange {
        /// It was a list of blocks, and is a text.
        Text = "text",
        /// It was a text, and is a list of blocks.
        Blocks = "blocks",
        /// It has marks for the cache, and had none.
        Marked = "marked",
        /// It had marks for the cache, and has none.
        Unmarked = "unmarked",
        /// It has other marks for the cache, or at other places.
        Remarked = "remarked",
    }
}

impl FormChange {
    /// Whether it is another shape, and not another mark.
    pub const fn is_shape(self) -> bool {
        matches!(self, Self::Text | Self::Blocks)
    }

    fn words(self) -> &'static str {
        match self {
            Self::Text => "changed its form from a list of blocks to a text",
            Self::Blocks => "changed its form from a text to a list of blocks",
            Self::Marked => "has a mark for the cache, and had none",
            Self::Unmarked => "has no mark for the cache, and had one",
            Self::Remarked => "has another mark for the cache, or has it at another place",
        }
    }
}

impl ReshapedContent {
    /// The index of the message that holds it; `None` for a tool and the system prompt. O(1).
    pub fn message(&self) -> Option<usize> {
        self.owner.as_str().strip_prefix("message:")?.parse().ok()
    }

    /// It in a sentence, without the stop at its end. O(1).
    pub fn words(&self) -> String {
        let Self { owner, role, change } = self;
        let what = match owner.as_str().split_once(':') {
            Some(("tool", name)) => format!("the tool {name}"),
            Some((_, index)) => format!("message {index}"),
            None => "the system prompt".to_owned(),
        };
        let role = role.as_ref().map(|role| format!(" ({role})")).unwrap_or_default();
        format!("{what}{role} {}", change.words())
    }
}

/// What has another form in the next request, or list of messages, than in the previous one: the tools,
/// the system prompt, then the messages, by their index. Linear in both.
pub fn reshaped(previous: &Value, next: &Value) -> Vec<ReshapedContent> {
    let mut found = Vec::new();
    let mut look = |key: &str, was: &Value, is: &Value, owner: &str, role: Option<&str>| {
        let marks = [was, is].map(|value| marks(value, &[]));
        let mark = match &marks {
            [was, is] if was == is => None,
            [was, _] if was.is_empty() => Some(FormChange::Marked),
            [_, is] if is.is_empty() => Some(FormChange::Unmarked),
            _ => Some(FormChange::Remarked),
        };
        let (owner, role) = (FacetId::from(owner), role.map(str::to_owned));
        let changes = shape(Some(key), was, is).into_iter().chain(mark);
        found.extend(changes.map(|change| ReshapedContent {
            owner: owner.clone(),
            role: role.clone(),
            change,
        }));
    };
    let both = |key: &str| previous.get(key).zip(next.get(key));
    let list = |key: &str| both(key).and_then(|(was, is)| was.as_array().zip(is.as_array()));
    let (was, is) = list("tools").unwrap_or_default();
    for (was, is) in was.iter().zip(is) {
        look("", was, is, &format!("tool:{}", tool_name(is)), None);
    }
    for (key, owner) in [("system", "system"), ("instructions", "system"), ("input", "message:0")] {
        // A text alone stands for the first item.
        let is_text = |of: &Value| owner == "system" || of.as_str().is_some();
        if let Some((was, is)) = both(key).filter(|(was, is)| is_text(was) || is_text(is)) {
            look("content", was, is, owner, None);
        }
    }
    let messages = list("messages").or_else(|| list("input"));
    let (was, is) =
        messages.or_else(|| previous.as_array().zip(next.as_array())).unwrap_or_default();
    for (index, (was, is)) in was.iter().zip(is).enumerate() {
        let role = is.str_at("role").or_else(|| is.str_at("type"));
        look("", was, is, &format!("message:{index}"), role);
    }
    found
}

/// Whether a content in a value is a text or a list of blocks now, and was the other; `None` where all
/// have the form that they had.
fn shape(key: Option<&str>, was: &Value, is: &Value) -> Option<FormChange> {
    let is_content =
        key.is_some_and(|key| matches!(key, "content" | "output" | "system" | "instructions"));
    match (was, is) {
        (Value::Array(_), Value::String(_)) if is_content => Some(FormChange::Text),
        (Value::String(_), Value::Array(_)) if is_content => Some(FormChange::Blocks),
        (Value::Array(was), Value::Array(is)) => {
            was.iter().zip(is).find_map(|(was, is)| shape(None, was, is))
        }
        (Value::Object(was), Value::Object(is)) => {
            is.iter().find_map(|(key, is)| shape(Some(key), was.get(key)?, is))
        }
        _ => None,
    }
}

/// The marks for the cache in a value, each with the indices of the lists that lead to it.
fn marks<'v>(value: &'v Value, at: &[usize]) -> Vec<(Vec<usize>, &'v Value)> {
    match value {
        Value::Array(list) => {
            let inner = |(index, value)| marks(value, &[at, &[index]].concat());
            list.iter().enumerate().flat_map(inner).collect()
        }
        Value::Object(members) => {
            let mut found = Vec::new();
            for (key, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                if is_cache_mark(key) {
                    found.push((at.to_vec(), value));
                } else {
                    found.extend(marks(value, at));
                }
            }
            found
        }
        _ => Vec::new(),
    }
}

/// Whether a value has a mark for the cache that is not null.
pub(super) fn is_marked(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().any(is_marked),
        Value::Object(object) => {
            let is_mark = |(key, mark): (&String, &Value)| is_cache_mark(key) && !mark.is_null();
            object.iter().any(is_mark) || object.values().any(is_marked)
        }
        _ => false,
    }
}

impl RequestDiff {
    /// What differs between two requests with this unchanged prefix.
    pub(super) fn new(prefix: PrefixReport, changes: Changes) -> Self {
        let Changes { tools, tool_names: [was, is], parameters, breaks } = changes;
        let divergence = prefix.divergence.as_ref();
        let first_tool = divergence.and_then(|divergence| first_tool(divergence, &was, &is));
        Self { prefix, tools, parameters, breaks, first_tool }
    }

    /// Who wrote what differs first: in the next request, or in the previous one where the next one
    /// lacks it, as a tool that is gone. O(1).
    pub fn owner(&self) -> Option<Cow<'_, Owner>> {
        let divergence = self.prefix.divergence.as_ref()?;
        if let Some(name) = &self.first_tool {
            let facet = FacetId::from(format!("tool:{name}"));
            return Some(Cow::Owned(Owner::Recorded { facet, frame: None }));
        }
        divergence.owner.as_ref().or(divergence.previous_owner.as_ref()).map(Cow::Borrowed)
    }

    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.prefix.divergence.is_none()
            && self.prefix.unchanged == self.prefix.tokens
            && self.tools.is_empty()
            && self.parameters.is_empty()
    }
}

fn tools(previous: &Value, next: &Value) -> Vec<ToolChange> {
    fn list(request: &Value) -> Vec<(&str, Cow<'_, Value>)> {
        let tools = request.as_object().map(tool_list).unwrap_or_default().into_iter();
        tools.map(|tool| (tool_name(tool), without_mark(tool))).collect()
    }
    let (mut was, is) = (list(previous), list(next));
    let mut changes = Vec::new();
    for (name, next) in is {
        let same = was.iter().position(|(other, _)| *other == name);
        let previous = same.map(|at| was.remove(at).1);
        if previous.as_ref() != Some(&next) {
            let path = previous.as_ref().map(|was| first_difference(was, &next));
            changes.push(ToolChange {
                name: name.to_owned(),
                previous: previous.map(Cow::into_owned),
                next: Some(next.into_owned()),
                path: path.unwrap_or_default(),
            });
        }
    }
    let gone = was.into_iter().map(|(name, tool)| ToolChange {
        name: name.to_owned(),
        previous: Some(tool.into_owned()),
        next: None,
        path: Path::default(),
    });
    changes.extend(gone);
    changes
}

/// The definition as the model reads it: a mark for the cache is none of it.
pub(super) fn without_mark(tool: &Value) -> Cow<'_, Value> {
    match tool {
        Value::Object(members) if members.keys().any(|key| is_cache_mark(key)) => {
            let members = members.iter().filter(|(key, _)| !is_cache_mark(key));
            let members = members.map(|(key, value)| (key.clone(), value.clone()));
            Cow::Owned(members.collect::<Object>().into())
        }
        tool => Cow::Borrowed(tool),
    }
}

/// The member in which Bedrock has the tools, and how they are chosen.
pub(crate) const TOOL_CONFIG: &str = "toolConfig";

/// The member of an element of its lists that says where a cache may end.
pub(super) const CACHE_POINT: &str = "cachePoint";

/// The definitions of the tools of a request.
pub(crate) fn tool_list(request: &Object) -> Vec<&Value> {
    let listed = request.get("tools").or_else(|| request.get(TOOL_CONFIG)?.get("tools"));
    let tools = match listed {
        Some(Value::Array(list)) => list.as_slice(),
        // Gemini takes a group alone.
        Some(group @ Value::Object(_)) => std::slice::from_ref(group),
        _ => &[],
    };
    tools.iter().flat_map(definitions).filter(|tool| !is_mark(tool)).collect()
}

/// Whether an element of Bedrock's list of tools says where a cache may end, and is none of them.
fn is_mark(tool: &Value) -> bool {
    tool.as_object().is_some_and(|of| of.keys().eq([CACHE_POINT]))
}

/// The members under which Gemini has the definitions of functions, as a group.
pub(super) const GROUPS: [&str; 2] = ["functionDeclarations", "function_declarations"];

/// The definitions in an element of a list of tools. A group of Gemini, which has no other member,
/// holds several.
fn definitions(tool: &Value) -> &[Value] {
    let group = tool.as_object().filter(|members| members.len() == 1);
    let listed = group.and_then(|of| GROUPS.iter().find_map(|key| of.get(key)?.as_array()));
    listed.unwrap_or(std::slice::from_ref(tool))
}

/// The name of a tool, or its type where it has no name, or else its only member: the provider's own
/// tools of Gemini are named so.
pub(super) fn tool_name(tool: &Value) -> &str {
    let inner = |key: &str| tool.get(key)?.str_at("name");
    let name = inner("function").or_else(|| tool.str_at("name")).or_else(|| inner("custom"));
    let name = name.or_else(|| inner("toolSpec"));
    let only = || match tool.as_object()?.keys().collect::<Vec<_>>()[..] {
        [only] => Some(only.as_str()),
        _ => None,
    };
    name.or_else(|| tool.str_at("type")).or_else(only).unwrap_or("unnamed")
}

/// The path to the first value that is not the same in both.
fn first_difference(was: &Value, is: &Value) -> Path {
    let mut path = Vec::new();
    descend(was, is, &mut path);
    path.into_iter().collect()
}

fn descend(was: &Value, is: &Value, path: &mut Vec<PathElement>) {
    let next = match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            let keys = was.keys().chain(is.keys().filter(|key| !was.contains_key(key)));
            let differs = |key: &&String| was.get(key) != is.get(key);
            keys.into_iter()
                .find(differs)
                .map(|key| (PathElement::Key(key.clone()), was.get(key), is.get(key)))
        }
        (Value::Array(was), Value::Array(is)) => {
            let mut indices = 0..was.len().max(is.len());
            let found = indices.find(|index| was.get(*index) != is.get(*index));
            found.map(|index| (PathElement::Index(index), was.get(index), is.get(index)))
        }
        _ => None,
    };
    let Some((element, was, is)) = next else { return };
    path.push(element);
    if let (Some(was), Some(is)) = (was, is) {
        descend(was, is, path);
    }
}

impl ParameterChange {
    /// The members that differ between the parameters of two requests. O(parameters).
    pub fn between(previous: &Object, next: &Object) -> Vec<Self> {
        let keys = previous.keys().chain(next.keys().filter(|key| !previous.contains_key(key)));
        let change = |name: &String| Self {
            name: name.clone(),
            previous: previous.get(name).cloned(),
            next: next.get(name).cloned(),
        };
        // What a request goes on from stands in the place of a conversation that the provider keeps.
        let keys = keys.filter(|name| *name != CONVERSATION);
        keys.map(change).filter(|change| change.previous != change.next).collect()
    }
}
