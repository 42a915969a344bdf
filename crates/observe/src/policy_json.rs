//! Policies as JSON and TOML: the members have the names of the fields.

use serde::de::DeserializeOwned;

use super::{LineRule, Pointer, Policy, Target, Template};
use crate::{
    Error, ErrorKind, Result,
    json::{Fields, Object, ObjectExt, Value, from_value, to_value},
};

crate::json::serde_through_text!(Pointer, Target, Template);
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
            ticks: member(&mut fields, "ticks")?,
            usernames: member(&mut fields, "usernames")?,
            username_texts: member(&mut fields, "username_texts")?,
            account_notes: member(&mut fields, "account_notes")?,
            failed: member(&mut fields, "failed")?,
            failed_texts: member(&mut fields, "failed_texts")?,
            prefixes: member(&mut fields, "prefixes")?,
            dispatch: member(&mut fields, "dispatch")?,
            login: member(&mut fields, "login")?,
            logout: member(&mut fields, "logout")?,
            register: member(&mut fields, "register")?,
            username_arguments: member(&mut fields, "username_arguments")?,
            tools: member(&mut fields, "tools")?,
            partials: member(&mut fields, "partials")?,
            actions: member(&mut fields, "actions")?,
            form: member(&mut fields, "form")?,
            closing: member(&mut fields, "closing")?,
            notes: member(&mut fields, "notes")?,
            signed_out: fields.string("signed_out")?.unwrap_or(plain.signed_out),
        };
        if let Some(key) = fields.rest().keys().next() {
            return Err(Error::expected("no other member", format_args!("{key:?}")));
        }
        policy.tools.iter().enumerate().try_for_each(|(tool, rule)| {
            let check = |(at, line)| check_line(line).map_err(|error: Error| error.under(at));
            let checked = rule.lines.iter().enumerate().try_for_each(check);
            checked.map_err(|error| error.under("lines").under(tool).under("tools"))
        })?;
        Ok(policy)
    }

    /// Reads a policy that is written as TOML. O(text).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] with the line where the text is not TOML, and those of
    /// [`Policy::from_json`].
    #[cfg(feature = "toml")]
    pub fn from_toml(text: &str) -> Result<Self> {
        let value: Value = toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() as u64 + 1;
            Error::new(ErrorKind::Shape, format!("not TOML: {}", error.message())).on_line(line)
        })?;
        Self::from_json(value)
    }

    /// The policy in the form that [`Policy::from_json`] reads. O(size).
    pub fn to_json(&self) -> Value {
        let mut object = Object::new();
        object.put("version", VERSION);
        object.put("heading", self.heading.as_str());
        object.put_some("millis_per_tick", self.millis_per_tick);
        for (name, value) in [
            ("ticks", to_value(&self.ticks)),
            ("usernames", to_value(&self.usernames)),
            ("account_notes", to_value(&self.account_notes)),
            ("failed", to_value(&self.failed)),
            ("username_arguments", to_value(&self.username_arguments)),
            ("username_texts", to_value(&self.username_texts)),
            ("failed_texts", to_value(&self.failed_texts)),
            ("prefixes", to_value(&self.prefixes)),
            ("login", to_value(&self.login)),
            ("logout", to_value(&self.logout)),
            ("register", to_value(&self.register)),
            ("notes", to_value(&self.notes)),
            ("dispatch", to_value(&self.dispatch)),
            ("tools", to_value(&self.tools)),
            ("partials", to_value(&self.partials)),
            ("actions", to_value(&self.actions)),
            ("form", to_value(&self.form)),
            ("closing", to_value(&self.closing)),
        ] {
            // Texts, flags and integers are written always.
            object.put_some(name, value.ok());
        }
        object.put("signed_out", self.signed_out.as_str());
        object.into()
    }
}

/// A member; what is not there is empty.
fn member<T: DeserializeOwned + Default>(fields: &mut Fields, key: &str) -> Result<T> {
    Ok(fields.nested(key, from_value)?.unwrap_or_default())
}

fn check_line(line: &LineRule) -> Result<()> {
    if line.value.is_none() && line.each.is_none() {
        return Err(Error::expected("a line with a value, a list (each) or both", "neither"));
    }
    if line.each.is_some() != line.item.is_some() {
        return Err(Error::expected("each and item together", "one of them"));
    }
    Ok(())
}
