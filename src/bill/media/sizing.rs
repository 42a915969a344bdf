//! How many cells an image comes to, after its provider made it smaller.

/// The side of a patch of OpenAI's.
const PATCH: u64 = 32;

/// How large an image may be: what is larger is made smaller, and nothing is made larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// The longest side, in pixels.
    pub(super) side: u64,
    /// The most patches; `None` where an image is not made smaller for their sake.
    pub(super) patches: Option<u64>,
}

/// Anthropic: patches of 28 pixels of the largest size of the same shape that keeps both limits.
pub(super) fn patches_of_28(width: u64, height: u64, longest: u64, most: u64) -> u64 {
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

/// OpenAI: tiles of 512 pixels, after the image was made to fit 2,048, and its shorter side 768.
pub(super) fn tiles_of_512(width: u64, height: u64) -> u64 {
    let (mut width, mut height) = (width as f64, height as f64);
    let shrink = (2_048.0 / width.max(height)).min(1.0);
    (width, height) = (width * shrink, height * shrink);
    let shrink = (768.0 / width.min(height)).min(1.0);
    ceil(width * shrink / 512.0) * ceil(height * shrink / 512.0)
}

/// OpenAI: patches of 32 pixels, after the image was made to fit the longest side and the most
/// patches.
pub(super) fn patches_of_32(width: u64, height: u64, limits: Limits) -> u64 {
    let cells = |width: u64, height: u64| width.div_ceil(PATCH) * height.div_ceil(PATCH);
    let (mut width, mut height) = (width, height);
    let long = width.max(height);
    if long > limits.side {
        let fit = |side: u64| ((side * limits.side + long / 2) / long).max(1);
        (width, height) = (fit(width), fit(height));
    }
    let all = cells(width, height);
    let Some(most) = limits.patches.filter(|most| all > *most) else { return all };
    let (w, h) = (width as f64 / PATCH as f64, height as f64 / PATCH as f64);
    let shrink = (most as f64 / (w * h)).sqrt();
    // The scale is such that one side is whole patches, and sides are whole pixels.
    let fit = |side: f64| (side * shrink).floor().max(1.0) / (side * shrink);
    let shrink = shrink * fit(w).min(fit(h));
    let pixels = |side: u64| floor(side as f64 * shrink);
    cells(pixels(width), pixels(height)).min(most)
}

/// Google, to Gemini 2.5: one tile for an image within 384 pixels, else tiles whose side follows
/// from the image's shorter one.
pub(super) fn tiles_of_768(width: u64, height: u64) -> u64 {
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

/// The number of whole pixels, one at least. What is a rounding error below a number is that number.
fn floor(value: f64) -> u64 {
    let pixels = (value + 1e-6).floor().max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
    {
        pixels as u64
    }
}
