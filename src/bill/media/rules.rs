//! What images cost, by the rules that providers publish. `docs/counts.md` names the pages and dates.

use std::fmt;

use super::sizing::{Limits, patches_of_28, patches_of_32, tiles_of_512, tiles_of_768};
use crate::transcript::without_router;

/// How closely a model is to look at an image, as its block says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ImageDetail {
    /// What the provider does where nothing else is said.
    #[default]
    Auto,
    /// OpenAI's `low`, Google's `MEDIA_RESOLUTION_LOW`.
    Low,
    /// Google's `MEDIA_RESOLUTION_MEDIUM`.
    Medium,
    /// OpenAI's `high`, Google's `MEDIA_RESOLUTION_HIGH`.
    High,
    /// OpenAI's `original`, Google's `MEDIA_RESOLUTION_ULTRA_HIGH`.
    Original,
}

impl ImageDetail {
    /// The detail with one of these names; a name that no provider has is `Auto`.
    pub fn from_name(name: &str) -> Self {
        match name {
            "low" | "MEDIA_RESOLUTION_LOW" => Self::Low,
            "medium" | "MEDIA_RESOLUTION_MEDIUM" => Self::Medium,
            "high" | "MEDIA_RESOLUTION_HIGH" => Self::High,
            "original" | "ultra_high" | "MEDIA_RESOLUTION_ULTRA_HIGH" => Self::Original,
            _ => Self::Auto,
        }
    }
}

crate::json::name_enum! {
    /// The rule that an image or a document is counted by.
    #[non_exhaustive]
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum MediaRule {
        /// Anthropic: a token for each patch of 28 pixels.
        AnthropicPatches = "anthropicPatches",
        /// Anthropic: so much for each page.
        AnthropicPages = "anthropicPages",
        /// OpenAI: a base, and so much for each tile of 512 pixels.
        OpenaiTiles = "openaiTiles",
        /// OpenAI: patches of 32 pixels, times a factor of the model.
        OpenaiPatches = "openaiPatches",
        /// Google, to Gemini 2.5: 258 for each tile.
        GoogleTiles = "googleTiles",
        /// Google, from Gemini 3 on: as many as the resolution says, whatever the size.
        GoogleResolution = "googleResolution",
        /// Google: so much for each page.
        GooglePages = "googlePages",
        /// What the source says itself.
        Stated = "stated",
    }
}

impl fmt::Display for MediaRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AnthropicPatches => "Anthropic's patches of 28 pixels",
            Self::AnthropicPages => "Anthropic's tokens for a page",
            Self::OpenaiTiles => "OpenAI's tiles of 512 pixels",
            Self::OpenaiPatches => "OpenAI's patches of 32 pixels",
            Self::GoogleTiles => "Google's tiles",
            Self::GoogleResolution => "Google's tokens for a resolution",
            Self::GooglePages => "Google's tokens for a page",
            Self::Stated => "what the source says",
        })
    }
}

/// How the models of a provider count the pixels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::bill) enum ImageRule {
    Claude { longest: u64, most: u64 },
    Tiles { image: u64, tile: u64 },
    Patches { hundredths: u64, sizes: Sizes },
    GeminiTiles,
    GeminiResolution,
}

/// How far a family of models makes images smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::bill) enum Sizes {
    /// 2,048 pixels and 1,536 patches, at every detail.
    Small,
    /// 2,048 pixels and 6,144 patches, at every detail.
    Medium,
    Gpt54,
    Gpt55,
    Gpt56,
    Gpt6,
}

const fn limits(side: u64, patches: u64) -> Limits {
    Limits { side, patches: Some(patches) }
}

/// The images that keep their size. One of more patches than this is rejected.
const UNRESIZED: Limits = Limits { side: 65_535, patches: None };
const MOST_PATCHES: u64 = 30_000;

impl Sizes {
    fn limits(self, detail: ImageDetail) -> Limits {
        use ImageDetail::{Auto, High, Low, Medium, Original};
        match (self, detail) {
            (Self::Small, _) => limits(2_048, 1_536),
            (Self::Medium, _) | (Self::Gpt54, Low) => limits(2_048, 6_144),
            (Self::Gpt54, Auto | Medium | High) | (Self::Gpt55 | Self::Gpt56, Medium | High) => {
                limits(2_048, 2_500)
            }
            (Self::Gpt6, Medium | High) => limits(65_535, 2_500),
            (Self::Gpt54, Original) | (Self::Gpt55, Auto | Original) => limits(6_000, 10_000),
            (Self::Gpt55 | Self::Gpt56 | Self::Gpt6, Low) => Limits { side: 512, patches: None },
            (Self::Gpt56 | Self::Gpt6, Auto | Original) => UNRESIZED,
        }
    }
}

/// Names of models and their rules. The longest name that a model begins with decides; without a
/// rule none is published.
const RULES: [(&str, Option<ImageRule>); 40] = [
    ("gpt-4o", GPT_4O),
    ("gpt-4o-mini", tiles(2_833, 5_667)),
    ("chatgpt-4o", GPT_4O),
    ("gpt-4.1", GPT_4O),
    ("gpt-4.1-mini", patches(162, Sizes::Medium)),
    ("gpt-4.1-nano", patches(246, Sizes::Small)),
    ("gpt-4.5", GPT_4O),
    ("gpt-4-turbo", GPT_4O),
    ("gpt-5", tiles(70, 140)),
    ("gpt-5-mini", patches(120, Sizes::Small)),
    ("gpt-5-nano", patches(150, Sizes::Small)),
    ("gpt-5-codex-mini", None),
    ("gpt-5.", None),
    ("gpt-5.1", tiles(70, 140)),
    ("gpt-5.1-codex-mini", None),
    ("gpt-5.2", patches(120, Sizes::Medium)),
    ("gpt-5.4", patches(120, Sizes::Gpt54)),
    ("gpt-5.5", patches(120, Sizes::Gpt55)),
    ("gpt-5.6", patches(120, Sizes::Gpt56)),
    ("gpt-6-astra", patches(120, Sizes::Gpt6)),
    ("o1", tiles(75, 150)),
    ("o1-mini", None),
    ("o1-preview", None),
    ("o3", tiles(75, 150)),
    ("o3-mini", None),
    ("o4-mini", patches(172, Sizes::Small)),
    ("computer-use-preview", tiles(65, 129)),
    // They make images, or hear and speak: their usage tells images and sounds apart.
    ("gpt-4o-audio", None),
    ("gpt-4o-mini-audio", None),
    ("gpt-4o-realtime", None),
    ("gpt-4o-mini-realtime", None),
    ("gpt-4o-transcribe", None),
    ("gpt-4o-mini-transcribe", None),
    ("gpt-4o-mini-tts", None),
    ("gemini-1.5", Some(ImageRule::GeminiTiles)),
    ("gemini-2.0", Some(ImageRule::GeminiTiles)),
    ("gemini-2.5", Some(ImageRule::GeminiTiles)),
    ("gemini-2.5-flash-image", None),
    ("gemini-3", Some(ImageRule::GeminiResolution)),
    ("gemini-3-pro-image", None),
];
const GPT_4O: Option<ImageRule> = tiles(85, 170);

#[expect(clippy::unnecessary_wraps, reason = "of some models the table says that they have none")]
const fn tiles(image: u64, tile: u64) -> Option<ImageRule> {
    Some(ImageRule::Tiles { image, tile })
}

#[expect(clippy::unnecessary_wraps, reason = "of some models the table says that they have none")]
const fn patches(hundredths: u64, sizes: Sizes) -> Option<ImageRule> {
    Some(ImageRule::Patches { hundredths, sizes })
}

impl ImageRule {
    /// The rule of a model; `None` where no rule for it is known here.
    pub(in crate::bill) fn of(model: &str) -> Option<Self> {
        let model = without_router(model);
        if let Some(version) = claude_version(model) {
            return Self::of_claude(version);
        }
        let rules = RULES.iter().filter(|(name, _)| model.starts_with(name));
        rules.max_by_key(|(name, _)| name.len())?.1
    }

    /// Claude 4.7 and later see more of an image.
    fn of_claude(version: (u32, u32)) -> Option<Self> {
        if version < (3, 0) {
            return None;
        }
        Some(if version < (4, 7) {
            Self::Claude { longest: 1_568, most: 1_568 }
        } else {
            Self::Claude { longest: 2_576, most: 4_784 }
        })
    }

    /// What it is called.
    pub(super) fn name(self) -> MediaRule {
        match self {
            Self::Claude { .. } => MediaRule::AnthropicPatches,
            Self::Tiles { .. } => MediaRule::OpenaiTiles,
            Self::Patches { .. } => MediaRule::OpenaiPatches,
            Self::GeminiTiles => MediaRule::GoogleTiles,
            Self::GeminiResolution => MediaRule::GoogleResolution,
        }
    }

    /// The tokens of an image of this size; `None` for one that the provider rejects, and for one
    /// without a size.
    pub(super) fn tokens(self, (width, height): (u32, u32), detail: ImageDetail) -> Option<u64> {
        use ImageDetail::{Auto, High, Low, Medium, Original};
        if width == 0 || height == 0 {
            return None;
        }
        let (width, height) = (u64::from(width), u64::from(height));
        Some(match self {
            Self::Claude { longest, most } => patches_of_28(width, height, longest, most),
            Self::Tiles { image, .. } if detail == Low => image,
            Self::Tiles { image, tile } => image + tile * tiles_of_512(width, height),
            Self::Patches { hundredths, sizes } => {
                let patches = patches_of_32(width, height, sizes.limits(detail));
                (patches <= MOST_PATCHES).then(|| (patches * hundredths).div_ceil(100))?
            }
            Self::GeminiTiles => match detail {
                Low => 64,
                Medium => 256,
                Auto | High | Original => 258 * tiles_of_768(width, height),
            },
            Self::GeminiResolution => match detail {
                Low => 280,
                Medium => 560,
                Auto | High => 1_120,
                Original => 2_240,
            },
        })
    }
}

/// The version in a name of Anthropic's: `claude-opus-4-7`, `claude-3-5-sonnet-20241022`. What has
/// no minor version is of version 0; numbers of more than two digits are dates.
fn claude_version(model: &str) -> Option<(u32, u32)> {
    let name = model.strip_prefix("claude-")?;
    let number = |word: &str| word.parse::<u32>().ok().filter(|_| word.len() <= 2);
    let mut words = name.split(['-', '.', '@']).skip_while(|word| number(word).is_none());
    let major = number(words.next()?)?;
    Some((major, words.next().and_then(number).unwrap_or(0)))
}

/// The tokens of an image of this size for a model, by its provider's published rule, where nothing
/// is said of the detail; `None` where no rule for the model is known here. A router's name may stand
/// before the model's.
///
/// ```
/// use afterimage::bill::image_tokens;
///
/// assert_eq!(image_tokens("claude-sonnet-4-5", 1_000, 1_000), Some(36 * 36));
/// assert_eq!(image_tokens("gpt-4o", 1_024, 1_024), Some(765));
/// assert_eq!(image_tokens("google/gemini-2.5-pro", 300, 300), Some(258));
/// assert_eq!(image_tokens("another", 300, 300), None);
/// ```
pub fn image_tokens(model: &str, width: u32, height: u32) -> Option<u64> {
    image_tokens_at(model, (width, height), ImageDetail::Auto)
}

/// As [`image_tokens`], for an image that the model looks at so closely.
///
/// ```
/// use afterimage::bill::{ImageDetail, image_tokens_at};
///
/// let low = |model| image_tokens_at(model, (1_024, 1_024), ImageDetail::Low);
/// assert_eq!((low("gpt-4o"), low("gpt-6-astra"), low("gemini-3-pro")), (Some(85), Some(308), Some(280)));
/// ```
pub fn image_tokens_at(model: &str, size: (u32, u32), detail: ImageDetail) -> Option<u64> {
    ImageRule::of(model)?.tokens(size, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_cost_what_the_providers_examples_say() {
        for (model, size, expected) in [
            // platform.claude.com: 1.15 megapixels and 1,568 pixels are the most.
            ("claude-sonnet-4-5-20250929", (200, 200), 64),
            ("claude-opus-4-6", (1_092, 1_092), 1_521),
            ("claude-opus-4-6", (784, 1_568), 28 * 56),
            ("claude-opus-4-7", (2_000, 1_500), 72 * 54),
            // An A4 page of 39 by 55 patches is made to fit 1,568 of them, or not.
            ("claude-sonnet-4-6", (1_075, 1_520), 33 * 47),
            ("anthropic/claude-opus-5.5", (1_075, 1_520), 39 * 55),
            ("us.anthropic.claude-fable-5-1-v1:0", (3_840, 2_160), 4_784),
            // developers.openai.com, "Calculating costs".
            ("gpt-4o-2024-08-06", (1_024, 1_024), 765),
            ("gpt-4o", (2_048, 4_096), 1_105),
            ("gpt-4o-mini", (1_024, 1_024), 2_833 + 4 * 5_667),
            ("gpt-4.1-mini", (1_024, 1_024), 1_659),
            ("gpt-5.1", (1_024, 1_024), 630),
            ("o1", (1_024, 1_024), 675),
            // The guide up to spring 2026: 1,536 patches at most.
            ("gpt-4.1-nano", (1_800, 2_400), 3_572),
            // ai.google.dev: an image of 960 by 540 is six tiles of 360.
            ("gemini-2.5-pro", (960, 540), 6 * 258),
            ("gemini-2.0-flash", (384, 384), 258),
            ("gemini-3.1-pro", (384, 384), 1_120),
        ] {
            assert_eq!(image_tokens(model, size.0, size.1), Some(expected), "{model} {size:?}");
        }
    }

    #[test]
    fn the_detail_counts_as_the_providers_say() {
        use ImageDetail::{Auto, High, Low, Original};
        for (model, size, detail, expected) in [
            // developers.openai.com: the examples of gpt-6-astra with `detail: high`.
            ("gpt-6-astra", (1_024, 1_024), High, 1_229),
            ("gpt-6-astra", (2_048, 2_048), High, 3_000),
            ("gpt-6-astra", (4_096, 512), High, 2_458),
            ("gpt-5.6-sol", (4_096, 512), High, 64 * 8 * 12 / 10 + 1),
            ("gpt-5.6-sol", (4_096, 512), Auto, 2_458),
            // `low` of 640 by 480 is 512 by 384.
            ("gpt-5.5", (640, 480), Low, 231),
            // It may cost more than `high`.
            ("gpt-5.4", (2_048, 2_048), Low, 4_916),
            ("gpt-5.4-mini", (2_048, 2_048), Auto, 3_000),
            ("gpt-5.4", (2_048, 2_048), Original, 4_916),
            ("gpt-4o", (2_048, 4_096), Low, 85),
            ("gpt-5", (2_048, 4_096), Low, 70),
            ("gemini-2.5-flash", (960, 540), Low, 64),
            ("gemini-3-flash", (960, 540), Original, 2_240),
            // Claude knows no detail.
            ("claude-sonnet-4-5", (200, 200), Low, 64),
        ] {
            let found = image_tokens_at(model, size, detail);
            assert_eq!(found, Some(expected), "{model} {size:?} {detail:?}");
        }
        // It is rejected, and costs nothing that is known.
        assert_eq!(image_tokens_at("gpt-5.6", (10_000, 10_000), Auto), None);
        for (name, detail) in [("low", Low), ("original", Original), ("", Auto), ("auto", Auto)] {
            assert_eq!(ImageDetail::from_name(name), detail);
        }
    }

    #[test]
    fn models_without_a_published_rule_have_none() {
        for model in [
            "gpt-5.3-codex",
            "gpt-6-sol",
            "gpt-6.1-terra",
            "o3-mini",
            "gpt-3.5-turbo",
            "claude-2",
            "claude-2.1",
            "claude-instant-1",
            "gpt-image-1",
            "gpt-4o-audio-preview",
            "gemini-4",
            "",
        ] {
            assert_eq!(image_tokens(model, 100, 100), None, "{model}");
        }
        assert_eq!(image_tokens("gpt-4o", 0, 100), None);
    }

    #[test]
    fn versions_of_claude_are_read_in_every_order() {
        for (model, expected) in [
            ("claude-3-5-sonnet-20241022", Some((3, 5))),
            ("claude-3.7-sonnet", Some((3, 7))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-opus-4-1-20250805", Some((4, 1))),
            ("claude-opus-4-8", Some((4, 8))),
            ("claude-mythos-5", Some((5, 0))),
            ("claude-opus-4-1@20250805", Some((4, 1))),
            ("gpt-4o", None),
        ] {
            assert_eq!(claude_version(model), expected, "{model}");
        }
    }

    #[test]
    fn no_size_panics_and_a_claude_image_keeps_its_limit() {
        let sizes = [(1, 1), (1, u32::MAX), (u32::MAX, u32::MAX), (8_000, 3), (2_577, 2_577)];
        let details = ["auto", "low", "medium", "high", "original"].map(ImageDetail::from_name);
        for (name, _) in RULES.iter().chain(&[("claude-3", None), ("claude-opus-5", None)]) {
            for (size, detail) in sizes.iter().flat_map(|size| details.map(|of| (*size, of))) {
                let tokens = image_tokens_at(name, size, detail);
                assert!(tokens.is_none_or(|tokens| tokens > 0), "{name} {size:?}");
                if *name == "claude-3" {
                    assert!(tokens.unwrap() <= 1_568, "{size:?}");
                }
            }
        }
    }
}
