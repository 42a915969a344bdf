use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Moment, ObservationInfo, Pointer, Template, policy_json::unsaid};
use crate::{Error, Result};

/// What counts as an observation, where things stand in a response, and what an action changes.
///
/// Built in code, as below, or read from JSON ([`Policy::from_json`]) or TOML (`from_toml`, feature
/// `toml`), whose members have the names of the fields. `examples/policies/spacemolt.toml` is a
/// whole one.
///
/// ```
/// use afterimage_observe::{ActionRule, Policy, Target, ToolRule};
///
/// let policy = Policy {
///     millis_per_tick: Some(10_000),
///     tools: vec![ToolRule { stale_after_ticks: Some(20), ..ToolRule::new("get_status") }],
///     actions: vec![ActionRule {
///         tool: "travel".to_owned(),
///         stale: vec![Target::parse("get_status#/location")?],
///     }],
///     ..Policy::default()
/// };
/// # Ok::<(), afterimage_observe::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self", default = "unsaid", deny_unknown_fields)]
pub struct Policy {
    /// The heading of a summary.
    pub heading: String,
    /// How long a tick takes, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millis_per_tick: Option<u64>,
    /// Where a response says which tick it is; the first that is there counts.
    pub ticks: Vec<Pointer>,
    /// Where a response says whose it is.
    pub usernames: Vec<Pointer>,
    /// What the text of a login says, with `{}` for the name: `Welcome back, {}!`.
    pub username_texts: Vec<String>,
    /// Where a response says what stands behind the account's name in a summary.
    pub account_notes: Vec<Pointer>,
    /// Where a response that failed says so: the place is there and neither null, false, zero nor
    /// empty.
    pub failed: Vec<Pointer>,
    /// What the text of a response that failed begins with.
    pub failed_texts: Vec<String>,
    /// What clients put before the names of tools, and is taken away.
    pub prefixes: Vec<String>,
    /// The tools that stand for several: where their arguments name the one.
    pub dispatch: BTreeMap<String, Pointer>,
    /// The tools that log in.
    pub login: Vec<String>,
    /// The tools that log out.
    pub logout: Vec<String>,
    /// The tools that make an account.
    pub register: Vec<String>,
    /// Where the arguments of these say whose account it is.
    pub username_arguments: Vec<Pointer>,
    /// The tools whose responses are observations, in the order of a summary's sections. The name
    /// `*` is any other tool.
    pub tools: Vec<ToolRule>,
    /// The responses that bring a part of another tool's observation up to date.
    pub partials: Vec<PartialRule>,
    /// What actions make stale.
    pub actions: Vec<ActionRule>,
    /// What a summary looks like.
    pub form: Form,
    /// What a summary ends with.
    pub closing: SummaryEnding,
    /// The notes of a summary, a line each.
    pub notes: Vec<String>,
    /// What a summary says where there is no account.
    pub signed_out: String,
}

/// A tool whose responses are observations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// The name.
    pub name: String,
    /// The title of its section; made of the name by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// From how many ticks on its observation is called old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_after_ticks: Option<u64>,
    /// What is then advised.
    #[serde(default = "stale_note")]
    pub stale_note: String,
    /// What a summary says of the rest; `{tool}` is the tool.
    #[serde(default = "hint")]
    pub hint: String,
    /// Whether there is an observation for each of its arguments.
    #[serde(default)]
    pub by_arguments: bool,
    /// Which answers take the place of an observation.
    #[serde(default)]
    pub accepts: ReplacementRule,
    /// The arrays that are merged element by element, with the member that tells these apart.
    #[serde(default)]
    pub arrays: BTreeMap<Pointer, String>,
    /// The lines that matter most, in order.
    #[serde(default)]
    pub lines: Vec<LineRule>,
    /// Other places that matter, and are shown before the rest.
    #[serde(default)]
    pub important: Vec<Pointer>,
    /// Whether nothing but `lines` and `important` is shown.
    #[serde(default)]
    pub only_marked: bool,
}

/// Which answers take the place of an observation. Errors and older ones never do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplacementRule {
    /// Those that say as much: not empty, of the same kind, an object with at least half of the
    /// members that the last full one had.
    #[default]
    SameShape,
    /// Any: for tools whose answers are one thing today and another tomorrow.
    Any,
}

/// A line of a summary: a label, a value, and the elements of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LineRule {
    /// What stands before the colon; nothing for a line that is all value.
    pub label: String,
    /// The value. May be left out where there is a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Template>,
    /// The list whose elements follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub each: Option<Pointer>,
    /// How an element looks; its places begin at the element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<Template>,
    /// Whether the elements stand on the line itself, and not on lines below it.
    #[serde(rename = "inline")]
    pub is_inline: bool,
}

/// A response that holds a part of another tool's observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartialRule {
    /// The tool that answers so.
    pub tool: String,
    /// Where in its payload the part stands; the whole of it by default.
    #[serde(default)]
    pub from: Pointer,
    /// The tool whose observation it belongs to.
    pub into: String,
    /// Where in that one.
    #[serde(default)]
    pub to: Pointer,
}

/// A tool that changes the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionRule {
    /// The tool.
    pub tool: String,
    /// What is out of date once it succeeded.
    #[serde(default)]
    pub stale: Vec<Target>,
}

/// An observation, or a part of one: `get_status`, `get_status#/location`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The tool.
    pub tool: String,
    /// The part; the root for the whole.
    pub path: Pointer,
}

/// What a summary looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Markdown with a section for each observation.
    #[default]
    Sections,
    /// A few indented lines without sections.
    Short,
}

/// What a summary ends with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryEnding {
    /// A line for each note, and for each observation that is old.
    #[default]
    Notes,
    /// One line with the tools to call: "To update: call …".
    Update,
    /// Nothing.
    Nothing,
}

impl Default for Policy {
    /// Every tool is observed, for each of its arguments; nothing is known of ticks and accounts.
    fn default() -> Self {
        Self {
            heading: "Current State".to_owned(),
            millis_per_tick: None,
            ticks: Vec::new(),
            usernames: Vec::new(),
            username_texts: Vec::new(),
            account_notes: Vec::new(),
            failed: Vec::new(),
            failed_texts: Vec::new(),
            prefixes: Vec::new(),
            dispatch: BTreeMap::new(),
            login: Vec::new(),
            logout: Vec::new(),
            register: Vec::new(),
            username_arguments: Vec::new(),
            tools: vec![ToolRule { by_arguments: true, ..ToolRule::new("*") }],
            partials: Vec::new(),
            actions: Vec::new(),
            form: Form::default(),
            closing: SummaryEnding::default(),
            notes: Vec::new(),
            signed_out: "Not logged in. Use register or login.".to_owned(),
        }
    }
}

fn stale_note() -> String {
    "consider refreshing".to_owned()
}

fn hint() -> String {
    "Use {tool} for the rest".to_owned()
}

impl ToolRule {
    /// The rule for a tool of which nothing special is known.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            stale_after_ticks: None,
            stale_note: stale_note(),
            hint: hint(),
            by_arguments: false,
            accepts: ReplacementRule::default(),
            arrays: BTreeMap::new(),
            lines: Vec::new(),
            important: Vec::new(),
            only_marked: false,
        }
    }

    /// The places in a response that its sections read. Those inside of a list's elements are
    /// left out.
    pub(super) fn places(&self) -> impl Iterator<Item = &Pointer> {
        let lines = self.lines.iter();
        let values =
            lines.clone().filter_map(|line| line.value.as_ref()).flat_map(Template::places);
        let lists = lines.filter_map(|line| line.each.as_ref());
        values.chain(lists).chain(&self.important).chain(self.arrays.keys())
    }

    /// The member that tells the elements of the array at `path` apart.
    pub(super) fn key_of(&self, path: &[String]) -> Option<String> {
        self.arrays.iter().find(|(array, _)| array.matches(path)).map(|(_, key)| key.clone())
    }
}

impl LineRule {
    /// A line with a value. O(text).
    ///
    /// # Errors
    /// Those of [`Template::parse`].
    pub fn new(label: impl Into<String>, value: &str) -> Result<Self> {
        let value = Some(Template::parse(value)?);
        Ok(Self { label: label.into(), value, each: None, item: None, is_inline: false })
    }

    /// A line with a list. O(text).
    ///
    /// # Errors
    /// Those of [`Template::parse`] and [`Pointer::parse`].
    pub fn list(label: impl Into<String>, each: &str, item: &str) -> Result<Self> {
        Ok(Self {
            label: label.into(),
            value: None,
            each: Some(Pointer::parse(each)?),
            item: Some(Template::parse(item)?),
            is_inline: true,
        })
    }
}

impl Target {
    /// Reads `tool` or `tool#/path`.
    ///
    /// # Errors
    /// Those of [`Pointer::parse`].
    pub fn parse(text: &str) -> Result<Self> {
        let (tool, path) = text.split_once('#').unwrap_or((text, ""));
        if tool.is_empty() {
            return Err(Error::expected("a tool, as in get_status#/location", "no name"));
        }
        Ok(Self { tool: tool.to_owned(), path: Pointer::parse(path)? })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.tool)?;
        if self.path.is_root() { Ok(()) } else { write!(f, "#{}", self.path) }
    }
}

impl Policy {
    /// The rule for this tool: its own, else that of `*`.
    pub(super) fn rule_of(&self, tool: &str) -> Option<&ToolRule> {
        let named = |name: &str| self.tools.iter().find(|rule| rule.name == name);
        named(tool).or_else(|| named("*").filter(|_| !self.is_of_session(tool)))
    }

    pub(super) fn is_of_session(&self, tool: &str) -> bool {
        [&self.login, &self.logout, &self.register].into_iter().flatten().any(|name| name == tool)
    }

    /// Whether an observation is older at `now` than it is wanted.
    pub(super) fn is_old(&self, info: &ObservationInfo, now: Moment) -> bool {
        if info.damage.is_some() {
            return false;
        }
        let limit = self.rule_of(&info.tool).and_then(|rule| rule.stale_after_ticks);
        let age = info.seen.age(now).ticks(self.millis_per_tick);
        limit.zip(age).is_some_and(|(limit, age)| age >= limit)
    }

    /// Where the section of a tool stands among the others.
    pub(super) fn place_of(&self, tool: &str) -> usize {
        self.tools.iter().position(|rule| rule.name == tool).unwrap_or(self.tools.len())
    }
}
