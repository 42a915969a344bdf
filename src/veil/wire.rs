//! Members of wire forms that parts and imported frames share.

use super::ContentForm;
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
