//! Members of wire forms that parts and imported frames share.

use super::{CallOutcome, ContentForm};
use crate::{Error, Result, json::Fields};

/// A string member.
pub(super) fn text(fields: &mut Fields, key: &str) -> Result<Option<Box<str>>> {
    Ok(fields.string(key)?.map(String::into_boxed_str))
}

/// The form of a content.
pub(super) fn form(fields: &mut Fields, key: &str) -> Result<Option<ContentForm>> {
    let Some(name) = fields.string(key)? else { return Ok(None) };
    let form = ContentForm::from_name(&name);
    form.map(Some).ok_or_else(|| {
        let expected = "a form of content, for example `parts`";
        Error::expected(expected, format_args!("{name:?}")).under(key)
    })
}

/// What became of a call; nothing is said of it without the member.
pub(super) fn outcome(fields: &mut Fields, key: &str) -> Result<CallOutcome> {
    let Some(name) = fields.string(key)? else { return Ok(CallOutcome::Unstated) };
    CallOutcome::from_name(&name).ok_or_else(|| {
        let expected = "the outcome of a call, for example `denied`";
        Error::expected(expected, format_args!("{name:?}")).under(key)
    })
}
