//! What a policy says of a call.

use super::{
    Pointer, Policy, Response,
    nested::is_said,
    shape::{is_refusal, meant},
};
use crate::json::Value;

/// The longest name of an observation before its arguments are cut, in bytes.
const LONGEST_NAME: usize = 200;

impl Policy {
    /// The tool that is meant: without a client's prefix, and for a tool that stands for several
    /// the one that its arguments name.
    pub(super) fn tool_of(&self, tool: &str, arguments: Option<&Value>) -> String {
        let named = self
            .dispatch
            .get(tool)
            .zip(arguments)
            .and_then(|(pointer, arguments)| pointer.of_value(arguments)?.as_str());
        let prefixes = self.prefixes.iter().filter(|prefix| !prefix.is_empty());
        let prefix = { prefixes }.find_map(|prefix| tool.strip_prefix(prefix.as_str()));
        let bare = prefix.filter(|bare| !bare.is_empty()).unwrap_or(tool);
        match named {
            Some(named) => named.to_owned(),
            None if prefix.is_some() && self.dispatch.contains_key(bare) => {
                self.tool_of(bare, arguments)
            }
            None => bare.to_owned(),
        }
    }

    /// What the observation of a call is called: the tool, with its arguments where there is one
    /// for each.
    pub(super) fn name_of(&self, tool: &str, arguments: Option<&Value>) -> String {
        let is_by_arguments = self.rule_of(tool).is_some_and(|rule| rule.by_arguments);
        let arguments = arguments.filter(|arguments| match arguments {
            Value::Null => false,
            Value::Object(object) => !object.is_empty(),
            _ => true,
        });
        let Some(arguments) = arguments.filter(|_| is_by_arguments) else {
            return tool.to_owned();
        };
        let name = format!("{tool} {arguments}");
        if name.len() <= LONGEST_NAME {
            return name;
        }
        let hash = blake3::hash(name.as_bytes()).to_hex();
        let end = (0..=LONGEST_NAME - 40).rev().find(|at| name.is_char_boundary(*at)).unwrap_or(0);
        let head = name.get(..end).unwrap_or_default();
        format!("{head}… {}", hash.get(..16).unwrap_or_default())
    }

    /// The name that the text of a login says.
    pub(super) fn name_in(&self, text: &str) -> Option<String> {
        self.username_texts.iter().find_map(|form| {
            let (before, after) = form.split_once("{}")?;
            let rest = text.strip_prefix(before)?;
            let end = if after.is_empty() { rest.len() } else { rest.find(after)? };
            rest.get(..end).filter(|name| !name.is_empty()).map(str::to_owned)
        })
    }

    /// Whether a response of this tool is kept, as a whole or as a part.
    pub(super) fn observes(&self, tool: &str) -> bool {
        self.rule_of(tool).is_some() || self.partials.iter().any(|rule| rule.tool == tool)
    }

    /// Whether the policy says anything of a tool.
    pub(super) fn names(&self, tool: &str) -> bool {
        self.observes(tool)
            || self.is_of_session(tool)
            || self.actions.iter().any(|rule| rule.tool == tool)
    }

    /// Whether a call failed.
    pub(super) fn is_failure(&self, response: &Response) -> bool {
        let begins = |text: &str| self.failed_texts.iter().any(|of| text.starts_with(of.as_str()));
        let places: &[Pointer] = &self.failed;
        response.is_error
            || is_refusal(&response.payload)
            || response.payload.as_str().is_some_and(|text| begins(&meant(text)))
            || [&response.payload, &response.envelope]
                .into_iter()
                .any(|value| places.iter().any(|place| place.of_value(value).is_some_and(is_said)))
    }
}
