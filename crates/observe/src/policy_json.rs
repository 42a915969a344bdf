//! Policies as JSON and TOML: the members have the names of the fields.

use serde::{Serialize, Serializer};

use super::{LineRule, Pointer, Policy, Target, Template};
use crate::{
    Error, ErrorKind, Result,
    json::{Fields, Value, object, to_value},
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
        let mut members = fields.rest();
        members.retain(|_, value| !value.is_null());
        // Not the trait's, which reads through this function.
        let policy = Self::deserialize(Value::Object(members))?;
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
        let mut object = object! { "version": VERSION };
        if let Ok(Value::Object(members)) = to_value(&Members(self)) {
            object.extend(members);
        }
        object.into()
    }
}

/// A policy without its version.
struct Members<'p>(&'p Policy);

impl Serialize for Members<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Policy::serialize(self.0, serializer)
    }
}

/// The values of members that a policy leaves out. Unlike by default, no tool is observed unless the
/// policy names one.
pub(super) fn unsaid() -> Policy {
    Policy { tools: Vec::new(), ..Policy::default() }
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
