//! How platforms and routers write the names of models.

use std::borrow::Cow;

/// A model of Anthropic's, as it is called where others serve it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HostedName<'m> {
    /// As Anthropic calls it.
    pub(crate) model: Cow<'m, str>,
    /// Whether the name says that it runs in a region: that may cost more.
    pub(crate) is_regional: bool,
}

impl<'m> HostedName<'m> {
    /// The model behind a name of Bedrock's (`us.anthropic.claude-opus-4-5-20251101-v1:0`, or an ARN
    /// that ends so) or of Vertex AI's (`claude-opus-4-5@20251101`). A router's name may stand before
    /// it. O(length).
    pub(crate) fn of(model: &'m str) -> Option<Self> {
        let name = model.rsplit_once('/').map_or(model, |(_, name)| name);
        if let Some((region, name)) = name.rsplit_once("anthropic.") {
            let is_name =
                name.starts_with("claude") && (region.is_empty() || region.ends_with('.'));
            let is_regional = region != "global.";
            return is_name.then(|| Self { model: without_version(name).into(), is_regional });
        }
        let (name, version) =
            name.split_once('@').filter(|(name, _)| name.starts_with("claude-"))?;
        let name = without_version(name);
        let model =
            if version == "default" { name.into() } else { format!("{name}-{version}").into() };
        Some(Self { model, is_regional: false })
    }
}

/// A name without the version of its platform at the end: `-v1`, `-v2:0`, `-v1:0:200k`.
fn without_version(name: &str) -> &str {
    name.rsplit_once("-v")
        .filter(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|(_, version)| {
            version.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b':')
        })
        .map_or(name, |(name, _)| name)
}

/// The name without that of a router, a region or a platform before it.
pub(crate) fn without_router(model: &str) -> &str {
    let model = model.rsplit_once('/').map_or(model, |(_, model)| model);
    model.find("claude-").and_then(|at| model.get(at..)).unwrap_or(model)
}

/// The model without its platform and without its date: `claude-opus-5-5` of
/// `us.anthropic.claude-opus-5-5-20261101-v1:0` and of `claude-opus-5-5@20261101`.
pub(super) fn without_date(model: &str) -> String {
    let hosted = HostedName::of(model).map(|of| of.model);
    let model = hosted.unwrap_or_else(|| without_router(model).into());
    let is_date = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let dated = model.rsplit_once('-').filter(|(_, date)| is_date(date));
    dated.map_or(&*model, |(model, _)| model).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_the_names_that_platforms_give_it() {
        for (name, model, is_regional) in [
            ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6", true),
            ("us.anthropic.claude-tide-4-20250929-v1:0", "claude-tide-4-20250929", true),
            ("global.anthropic.claude-tide-4-6", "claude-tide-4-6", false),
            ("us-gov.anthropic.claude-3-tide-20240229-v1:0:200k", "claude-3-tide-20240229", true),
            (
                "arn:aws:bedrock:x:1:inference-profile/eu.anthropic.claude-tide-4-v2:0",
                "claude-tide-4",
                true,
            ),
            ("bedrock/converse/apac.anthropic.claude-tide-4-v1:0", "claude-tide-4", true),
            ("vertex_ai/claude-tide-4@20250929", "claude-tide-4-20250929", false),
            ("claude-3-5-tide-v2@20241022", "claude-3-5-tide-20241022", false),
            ("claude-tide-4@default", "claude-tide-4", false),
        ] {
            let expected = HostedName { model: model.into(), is_regional };
            assert_eq!(HostedName::of(name), Some(expected), "{name}");
        }
        for name in [
            "claude-opus-4-6",
            "anthropic/claude-opus-4.6",
            "arn:aws:bedrock:x:1:application-inference-profile/tide",
            "notanthropic.claude-4",
            "amazon.nova-pro-v1:0",
            "gemini-3@001",
            "",
        ] {
            assert_eq!(HostedName::of(name), None, "{name}");
        }
    }
}
