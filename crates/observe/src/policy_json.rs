//! Policies as JSON and TOML: the members have the names of the fields.

use std::collections::BTreeMap;

use super::{
    ActionRule, Form, LineRule, PartialRule, Pointer, Policy, ReplacementRule, SummaryEnding,
    Target, Template, ToolRule,
};
use crate::{
    Error, ErrorKind, Result,
    json::{Fields, Object, ObjectExt, Value},
};

crate::json::serde_through_json!(Policy);

/// The version of a policy's members.
const VERSION: u64 = 1;

impl Policy {
    /// Reads a policy. What is not there is as in [`Policy::default`], but that no tool is
    /// observed unless one is named. O(size).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where a member is not known or of another type, and
    /// [`ErrorKind::Version`] for another version than 1.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a policy")?;
        match fields.u64("version")? {
            None | Some(VERSION) => {}
            Some(found) => {
                let message = format!("a policy of version {found}; version {VERSION} is known");
                return Err(Error::new(ErrorKind::Version, message));
            }
        }
        let plain = Self::default();
        let policy = Self {
            heading: fields.string("heading")?.unwrap_or(plain.heading),
            millis_per_tick: fields.u64("millis_per_tick")?,
            ticks: pointers(&mut fields, "ticks")?,
            usernames: pointers(&mut fields, "usernames")?,
            username_texts: fields.strings("username_texts")?.unwrap_or_default(),
            account_notes: pointers(&mut fields, "account_notes")?,
            failed: pointers(&mut fields, "failed")?,
            failed_texts: fields.strings("failed_texts")?.unwrap_or_default(),
            prefixes: fields.strings("prefixes")?.unwrap_or_default(),
            dispatch: map(&mut fields, "dispatch", |tool, text| {
                Ok((tool.to_owned(), Pointer::parse(&text)?))
            })?,
            login: fields.strings("login")?.unwrap_or_default(),
            logout: fields.strings("logout")?.unwrap_or_default(),
            register: fields.strings("register")?.unwrap_or_default(),
            username_arguments: pointers(&mut fields, "username_arguments")?,
            tools: list(&mut fields, "tools", tool_rule)?,
            partials: list(&mut fields, "partials", partial_rule)?,
            actions: list(&mut fields, "actions", action_rule)?,
            form: match fields.string("form")?.as_deref() {
                None | Some("sections") => Form::Sections,
                Some("short") => Form::Short,
                Some(other) => {
                    return Err(Error::expected("sections or short", other).under("form"));
                }
            },
            closing: match fields.string("closing")?.as_deref() {
                None | Some("notes") => SummaryEnding::Notes,
                Some("update") => SummaryEnding::Update,
                Some("nothing") => SummaryEnding::Nothing,
                Some(other) => {
                    let expected = "notes, update or nothing";
                    return Err(Error::expected(expected, other).under("closing"));
                }
            },
            notes: fields.strings("notes")?.unwrap_or_default(),
            signed_out: fields.string("signed_out")?.unwrap_or(plain.signed_out),
        };
        ends(fields, policy)
    }

    /// Reads a policy that is written as TOML. O(text).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] with the line where the text is not TOML, and those of
    /// [`Policy::from_json`].
    #[cfg(feature = "toml")]
    pub fn from_toml(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() as u64 + 1;
            Error::new(ErrorKind::Shape, format!("not TOML: {}", error.message())).on_line(line)
        })?;
        Self::from_json(of_toml(toml::Value::Table(table))?)
    }

    /// The policy in the form that [`Policy::from_json`] reads. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("version", VERSION);
        object.put("heading", self.heading.as_str());
        object.put_some("millis_per_tick", self.millis_per_tick);
        for (name, pointers) in [
            ("ticks", &self.ticks),
            ("usernames", &self.usernames),
            ("account_notes", &self.account_notes),
            ("failed", &self.failed),
            ("username_arguments", &self.username_arguments),
        ] {
            object.put(name, pointers.iter().map(Pointer::to_string).collect::<Value>());
        }
        for (name, texts) in [
            ("username_texts", &self.username_texts),
            ("failed_texts", &self.failed_texts),
            ("prefixes", &self.prefixes),
            ("login", &self.login),
            ("logout", &self.logout),
            ("register", &self.register),
            ("notes", &self.notes),
        ] {
            object.put(name, texts.iter().map(String::as_str).collect::<Value>());
        }
        let dispatch =
            self.dispatch.iter().map(|(tool, at)| (tool.as_str(), at.to_string().into()));
        object.put("dispatch", dispatch.collect::<Object>());
        object.put("tools", self.tools.iter().map(json_of_tool).collect::<Value>());
        let partials = self.partials.iter().map(|rule| {
            let mut object = Object::new();
            object.put("tool", rule.tool.as_str());
            object.put("from", rule.from.to_string());
            object.put("into", rule.into.as_str());
            object.put("to", rule.to.to_string());
            object
        });
        object.put("partials", partials.collect::<Value>());
        let actions = self.actions.iter().map(|rule| {
            let mut object = Object::new();
            object.put("tool", rule.tool.as_str());
            object.put("stale", rule.stale.iter().map(Target::to_string).collect::<Value>());
            object
        });
        object.put("actions", actions.collect::<Value>());
        object.put("form", if self.form == Form::Short { "short" } else { "sections" });
        object.put(
            "closing",
            match self.closing {
                SummaryEnding::Notes => "notes",
                SummaryEnding::Update => "update",
                SummaryEnding::Nothing => "nothing",
            },
        );
        object.put("signed_out", self.signed_out.as_str());
        object.into()
    }
}

fn json_of_tool(rule: &ToolRule) -> Object {
    let mut object = Object::new();
    object.put("name", rule.name.as_str());
    object.put_some("title", rule.title.as_deref());
    object.put_some("stale_after_ticks", rule.stale_after_ticks);
    object.put("stale_note", rule.stale_note.as_str());
    object.put("hint", rule.hint.as_str());
    object.put("by_arguments", rule.by_arguments);
    object.put_some("accepts", (rule.accepts == ReplacementRule::Any).then_some("any"));
    let arrays = rule.arrays.iter().map(|(at, key)| (at.to_string(), key.as_str().into()));
    object.put("arrays", arrays.collect::<Object>());
    let lines = rule.lines.iter().map(|line| {
        let mut object = Object::new();
        object.put("label", line.label.as_str());
        object.put_some("value", line.value.as_ref().map(Template::to_string));
        object.put_some("each", line.each.as_ref().map(Pointer::to_string));
        object.put_some("item", line.item.as_ref().map(Template::to_string));
        object.put("inline", line.is_inline);
        object
    });
    object.put("lines", lines.collect::<Value>());
    object.put("important", rule.important.iter().map(Pointer::to_string).collect::<Value>());
    object.put("only_marked", rule.only_marked);
    object
}

fn tool_rule(value: Value) -> Result<ToolRule> {
    let mut fields = Fields::of(value, "a tool")?;
    let plain = ToolRule::new(Fields::required(fields.string("name")?, "name", "a tool's name")?);
    let rule = ToolRule {
        title: fields.string("title")?,
        stale_after_ticks: fields.u64("stale_after_ticks")?,
        stale_note: fields.string("stale_note")?.unwrap_or(plain.stale_note),
        hint: fields.string("hint")?.unwrap_or(plain.hint),
        by_arguments: fields.bool("by_arguments")?.unwrap_or_default(),
        accepts: match fields.string("accepts")?.as_deref() {
            None | Some("same_shape") => ReplacementRule::SameShape,
            Some("any") => ReplacementRule::Any,
            Some(other) => {
                return Err(Error::expected("same_shape or any", other).under("accepts"));
            }
        },
        arrays: map(&mut fields, "arrays", |at, key| Ok((Pointer::parse(at)?, key)))?,
        lines: list(&mut fields, "lines", line_rule)?,
        important: pointers(&mut fields, "important")?,
        only_marked: fields.bool("only_marked")?.unwrap_or_default(),
        name: plain.name,
    };
    ends(fields, rule)
}

fn line_rule(value: Value) -> Result<LineRule> {
    let mut fields = Fields::of(value, "a line")?;
    let template = |text: Option<String>, key: &str| {
        let parsed = text.map(|text| Template::parse(&text)).transpose();
        parsed.map_err(|error| error.under(key))
    };
    let each = fields.string("each")?.map(|text| Pointer::parse(&text)).transpose();
    let rule = LineRule {
        label: fields.string("label")?.unwrap_or_default(),
        value: template(fields.string("value")?, "value")?,
        each: each.map_err(|error| error.under("each"))?,
        item: template(fields.string("item")?, "item")?,
        is_inline: fields.bool("inline")?.unwrap_or_default(),
    };
    // A misspelt member says more than the one that is then missing.
    let rule = ends(fields, rule)?;
    if rule.value.is_none() && rule.each.is_none() {
        return Err(Error::expected("a line with a value, a list (each) or both", "neither"));
    }
    if rule.each.is_some() != rule.item.is_some() {
        return Err(Error::expected("each and item together", "one of them"));
    }
    Ok(rule)
}

fn partial_rule(value: Value) -> Result<PartialRule> {
    let mut fields = Fields::of(value, "a partial response")?;
    let pointer = |text: Option<String>, key: &str| {
        Pointer::parse(&text.unwrap_or_default()).map_err(|error| error.under(key))
    };
    let rule = PartialRule {
        tool: Fields::required(fields.string("tool")?, "tool", "a tool's name")?,
        from: pointer(fields.string("from")?, "from")?,
        into: Fields::required(fields.string("into")?, "into", "a tool's name")?,
        to: pointer(fields.string("to")?, "to")?,
    };
    ends(fields, rule)
}

fn action_rule(value: Value) -> Result<ActionRule> {
    let mut fields = Fields::of(value, "an action")?;
    let stale = fields.strings("stale")?.unwrap_or_default();
    let target = |(index, text): (usize, &String)| {
        Target::parse(text).map_err(|error| error.under(index).under("stale"))
    };
    let rule = ActionRule {
        tool: Fields::required(fields.string("tool")?, "tool", "a tool's name")?,
        stale: stale.iter().enumerate().map(target).collect::<Result<_>>()?,
    };
    ends(fields, rule)
}

/// The members that are lists of places.
fn pointers(fields: &mut Fields, key: &str) -> Result<Vec<Pointer>> {
    let texts = fields.strings(key)?.unwrap_or_default();
    let parse = |(index, text): (usize, &String)| {
        Pointer::parse(text).map_err(|error| error.under(index).under(key))
    };
    texts.iter().enumerate().map(parse).collect()
}

fn list<T>(fields: &mut Fields, key: &str, load: fn(Value) -> Result<T>) -> Result<Vec<T>> {
    let values = fields.array(key)?.unwrap_or_default();
    let load = |(index, value)| load(value).map_err(|error| error.under(index).under(key));
    values.into_iter().enumerate().map(load).collect()
}

fn map<K: Ord, V>(
    fields: &mut Fields,
    key: &str,
    load: impl Fn(&str, String) -> Result<(K, V)>,
) -> Result<BTreeMap<K, V>> {
    let members = fields.object(key)?.unwrap_or_default();
    let member = |(name, value): (String, Value)| {
        let loaded = match value {
            Value::String(text) => load(&name, text),
            other => Err(Error::expected("a string", other.kind())),
        };
        loaded.map_err(|error| error.under(name).under(key))
    };
    members.into_iter().map(member).collect()
}

/// Refuses what nothing reads: it would be a word that was misspelt.
fn ends<T>(fields: Fields, loaded: T) -> Result<T> {
    match fields.rest().keys().next() {
        None => Ok(loaded),
        Some(key) => Err(Error::expected("a member that is known", format!("{key:?}"))),
    }
}

#[cfg(feature = "toml")]
fn of_toml(value: toml::Value) -> Result<Value> {
    Ok(match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Array(array) => {
            Value::Array(array.into_iter().map(of_toml).collect::<Result<_>>()?)
        }
        toml::Value::Table(table) => {
            let mut object = Object::new();
            for (key, value) in table {
                let value = of_toml(value).map_err(|error| error.under(&key))?;
                object.put(&key, value);
            }
            object.into()
        }
        toml::Value::Float(_) => return Err(Error::expected("an integer", "a fraction")),
        toml::Value::Datetime(_) => return Err(Error::expected("a string", "a date")),
    })
}
