//! What images cost, by the rules that providers publish. `docs/counts.md` names the pages and dates.

/// How the models of a provider count the pixels of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// Anthropic: a token for each patch of 28 pixels, after the image was made to fit the longest
    /// side and the most tokens.
    Claude { longest: u64, most: u64 },
    /// OpenAI: tokens for the image and for each tile of 512 pixels, after it was made to fit 2,048
    /// and its shorter side 768.
    Tiles { image: u64, tile: u64 },
    /// OpenAI: patches of 32 pixels, 1,536 at most, times hundredths.
    Patches { hundredths: u64 },
    /// Gemini: 258 for each tile of 768 pixels, or for an image within 384.
    Gemini,
}

/// Names of models and their rules. The longest name that a model begins with decides.
const RULES: [(&str, Rule); 27] = [
    ("claude-opus-4-7", Rule::Claude { longest: 2_576, most: 4_784 }),
    ("claude-opus-4-8", Rule::Claude { longest: 2_576, most: 4_784 }),
    ("claude-3", STANDARD),
    ("claude-haiku-4", STANDARD),
    ("claude-sonnet-4", STANDARD),
    ("claude-opus-4", STANDARD),
    ("gpt-4o", GPT_4O),
    ("gpt-4o-mini", Rule::Tiles { image: 2_833, tile: 5_667 }),
    ("gpt-4.1", GPT_4O),
    ("gpt-4.1-mini", Rule::Patches { hundredths: 162 }),
    ("gpt-4.1-nano", Rule::Patches { hundredths: 246 }),
    ("gpt-4.5", GPT_4O),
    ("gpt-4-turbo", GPT_4O),
    ("gpt-5-mini", Rule::Patches { hundredths: 120 }),
    ("gpt-5-nano", Rule::Patches { hundredths: 150 }),
    ("gpt-5", Rule::Tiles { image: 70, tile: 140 }),
    ("o1", Rule::Tiles { image: 75, tile: 150 }),
    ("o3", Rule::Tiles { image: 75, tile: 150 }),
    ("o4-mini", Rule::Patches { hundredths: 172 }),
    ("computer-use-preview", Rule::Tiles { image: 65, tile: 129 }),
    ("gemini-1.5", Rule::Gemini),
    ("gemini-2.0", Rule::Gemini),
    ("gemini-2.5", Rule::Gemini),
    // Their rules are not these, and not published in a form that is used here.
    ("gpt-5.", NONE),
    ("o3-mini", NONE),
    ("o1-mini", NONE),
    ("o1-preview", NONE),
];

const STANDARD: Rule = Rule::Claude { longest: 1_568, most: 1_568 };
const GPT_4O: Rule = Rule::Tiles { image: 85, tile: 170 };
/// A model without a rule: no image costs nothing, so it stands for "unknown".
const NONE: Rule = Rule::Patches { hundredths: 0 };

/// The tokens of an image of this size for a model, by its provider's published rule at full
/// detail; `None` where no rule for the model is known here. A router's name may stand before the
/// model's.
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
    let model = model.rsplit_once('/').map_or(model, |(_, model)| model);
    let rules = RULES.iter().filter(|(name, _)| model.starts_with(name));
    let (_, rule) = rules.max_by_key(|(name, _)| name.len())?;
    let (width, height) = (u64::from(width), u64::from(height));
    if *rule == NONE || width == 0 || height == 0 {
        return None;
    }
    Some(match *rule {
        Rule::Claude { longest, most } => claude(width, height, longest, most),
        Rule::Tiles { image, tile } => image + tile * tiles(width, height),
        Rule::Patches { hundredths } => (patches(width, height) * hundredths).div_ceil(100),
        Rule::Gemini => 258 * gemini_tiles(width, height),
    })
}

/// The largest size of the same shape that keeps both limits decides.
fn claude(width: u64, height: u64, longest: u64, most: u64) -> u64 {
    let cells = |width: u64, height: u64| width.div_ceil(28) * height.div_ceil(28);
    let (long, short) = (width.max(height), width.min(height));
    let shorter = |side: u64| (short * side + long / 2) / long;
    let fits = |side: u64| cells(side, shorter(side).max(1)) <= most;
    let side = long.min(longest);
    if fits(side) {
        return cells(side, shorter(side).max(1));
    }
    // What fits gets smaller with the side.
    let (mut low, mut high) = (1, side);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    cells(low, shorter(low).max(1))
}

fn tiles(width: u64, height: u64) -> u64 {
    let (mut width, mut height) = (width as f64, height as f64);
    let shrink = (2_048.0 / width.max(height)).min(1.0);
    (width, height) = (width * shrink, height * shrink);
    let shrink = (768.0 / width.min(height)).min(1.0);
    ceil(width * shrink / 512.0) * ceil(height * shrink / 512.0)
}

fn patches(width: u64, height: u64) -> u64 {
    const MOST: f64 = 1_536.0;
    let all = width.div_ceil(32) * height.div_ceil(32);
    if all <= 1_536 {
        return all;
    }
    // The image is made to fit, and then so that a side is whole patches.
    let (width, height) = (width as f64, height as f64);
    let shrink = (MOST * 32.0 * 32.0 / (width * height)).sqrt();
    let (wide, high) = (width * shrink / 32.0, height * shrink / 32.0);
    let fit = (wide.floor() / wide).min(high.floor() / high);
    (ceil(wide * fit) * ceil(high * fit)).min(1_536)
}

fn gemini_tiles(width: u64, height: u64) -> u64 {
    if width <= 384 && height <= 384 {
        return 1;
    }
    let unit = (width.min(height) * 2 / 3).clamp(256, 768);
    width.div_ceil(unit) * height.div_ceil(unit)
}

/// The number of whole parts, one at least. What is a rounding error above a number is that number.
fn ceil(value: f64) -> u64 {
    let parts = (value - 1e-9).ceil().max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
    {
        parts as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_cost_what_the_providers_examples_say() {
        for (model, size, expected) in [
            // docs.anthropic.com: 1.15 megapixels and 1,568 pixels are the most.
            ("claude-sonnet-4-5-20250929", (200, 200), 64),
            ("claude-opus-4-6", (1_092, 1_092), 1_521),
            ("claude-opus-4-6", (784, 1_568), 28 * 56),
            ("claude-opus-4-7", (2_000, 1_500), 72 * 54),
            // platform.openai.com, "Calculating costs".
            ("gpt-4o-2024-08-06", (1_024, 1_024), 765),
            ("gpt-4o", (2_048, 4_096), 1_105),
            ("gpt-4o-mini", (1_024, 1_024), 2_833 + 4 * 5_667),
            ("gpt-4.1-mini", (1_024, 1_024), 1_659),
            ("gpt-4.1-mini", (1_800, 2_400), 2_353),
            ("o1", (1_024, 1_024), 675),
            // ai.google.dev: an image of 960 by 540 is six tiles of 360.
            ("gemini-2.5-pro", (960, 540), 6 * 258),
            ("gemini-2.0-flash", (384, 384), 258),
        ] {
            assert_eq!(image_tokens(model, size.0, size.1), Some(expected), "{model} {size:?}");
        }
    }

    #[test]
    fn models_without_a_published_rule_have_none() {
        for model in ["gpt-5.2", "o3-mini", "gpt-3.5-turbo", "gemini-3-pro", "claude-2", ""] {
            assert_eq!(image_tokens(model, 100, 100), None, "{model}");
        }
        assert_eq!(image_tokens("gpt-4o", 0, 100), None);
    }

    #[test]
    fn no_size_panics_and_a_claude_image_keeps_its_limit() {
        for (name, _) in RULES {
            for size in [(1, 1), (1, u32::MAX), (u32::MAX, u32::MAX), (8_000, 3), (2_577, 2_577)] {
                let tokens = image_tokens(name, size.0, size.1);
                assert!(tokens.is_none_or(|tokens| tokens > 0), "{name} {size:?}");
                if name == "claude-3" {
                    assert!(tokens.unwrap() <= 1_568, "{size:?}");
                }
            }
        }
    }
}
