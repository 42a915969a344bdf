//! Documents: their pages, and what providers say that a page costs.

use super::rules::{ImageRule, MediaRule};

/// What Anthropic says that the text of a page takes, 1,500 to 3,000 tokens by its density: the
/// middle.
const CLAUDE_PAGE: u64 = 2_250;
/// What Google says that a page takes, to Gemini 2.5 and from Gemini 3 on.
const GEMINI_PAGE: u64 = 258;
const GEMINI_3_PAGE: u64 = 560;

/// A file that says to have more pages than this is not believed.
const MOST_PAGES: u64 = 100_000;

/// The pages of a PDF: as many as it says at its beginning where it is linearized, else as its tree of
/// pages counts, or else as are written openly. `None` where the bytes are no PDF, or its objects are
/// compressed and say none of this. Linear in the bytes.
///
/// ```
/// use afterimage::bill::pdf_pages;
///
/// let pdf = b"%PDF-1.4 1 0 obj <</Type /Pages /Kids [2 0 R 3 0 R] /Count 2>> endobj";
/// assert_eq!(pdf_pages(pdf), Some(2));
/// ```
pub fn pdf_pages(bytes: &[u8]) -> Option<u64> {
    if !bytes.starts_with(b"%PDF-") {
        return None;
    }
    let some = |pages: &u64| (1..=MOST_PAGES).contains(pages);
    let first = objects(bytes).next()?;
    if memchr::memmem::find(first, b"/Linearized").is_some() {
        return number(first, b"/N").filter(some);
    }
    // The root of the tree counts all pages, and inner nodes fewer. Outlines have counts too.
    let trees = objects(bytes).filter(|object| is_of(object, b"/Pages"));
    let counted = trees.filter_map(|tree| number(tree, b"/Count")).max().filter(some);
    // Where objects are compressed, those that are written openly may be some of the pages.
    let is_open = memchr::memmem::find(bytes, b"/ObjStm").is_none();
    let pages = || objects(bytes).filter(|object| is_of(object, b"/Page")).count() as u64;
    counted.or_else(|| is_open.then(pages).filter(some))
}

/// The objects of a file, each from its beginning to its end.
fn objects(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    const END: &[u8] = b"endobj";
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memmem::find(rest, END);
        let (object, after) = rest.split_at_checked(end.unwrap_or(rest.len()))?;
        rest = after.get(END.len()..).unwrap_or_default();
        let start = memchr::memmem::rfind(object, b"obj").unwrap_or(0);
        object.get(start..)
    })
}

/// Whether an object is of this type.
fn is_of(object: &[u8], name: &[u8]) -> bool {
    const TYPE: &[u8] = b"/Type";
    memchr::memmem::find_iter(object, TYPE).any(|at| {
        let rest = object.get(at + TYPE.len()..).unwrap_or_default().trim_ascii_start();
        let next = rest.strip_prefix(name).map(<[u8]>::first);
        next.is_some_and(|next| next.is_none_or(|byte| !byte.is_ascii_alphanumeric()))
    })
}

/// The first number that stands under a key.
fn number(object: &[u8], key: &[u8]) -> Option<u64> {
    memchr::memmem::find_iter(object, key).find_map(|at| {
        let digits = object.get(at + key.len()..)?.trim_ascii_start();
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(digits.get(..length)?).ok()?.parse::<u64>().ok()
    })
}

/// The tokens of a document of so many pages for a model: an estimate by what its provider says of
/// a page. `None` where it says nothing: OpenAI sends the text and an image of each page.
pub fn document_tokens(model: &str, pages: u64) -> Option<u64> {
    page_rule(model).and_then(|(page, _)| pages.checked_mul(page))
}

/// What a page takes for a model, and by which rule.
pub(super) fn page_rule(model: &str) -> Option<(u64, MediaRule)> {
    match ImageRule::of(model)? {
        ImageRule::Claude { .. } => Some((CLAUDE_PAGE, MediaRule::AnthropicPages)),
        ImageRule::GeminiTiles => Some((GEMINI_PAGE, MediaRule::GooglePages)),
        ImageRule::GeminiResolution => Some((GEMINI_3_PAGE, MediaRule::GooglePages)),
        ImageRule::Tiles { .. } | ImageRule::Patches { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_are_counted_by_the_tree_or_one_by_one() {
        let tree = b"%PDF-1.7\n1 0 obj\n<</Count 5/Kids[2 0 R]/Type/Pages>>\nendobj\n\
            2 0 obj<</Type/Pages/Count 3>>endobj 3 0 obj<</Type /Outlines /Count 40>>endobj";
        assert_eq!(pdf_pages(tree), Some(5));
        let open = b"%PDF-1.7\n1 0 obj<</Type /Page>>endobj 2 0 obj<< /Type/Page /X 1>>endobj";
        assert_eq!(pdf_pages(open), Some(2));
        assert_eq!(pdf_pages(b"%PDF-1.7 nothing open"), None);
        let linear = b"%PDF-1.5\n9 0 obj<</Linearized 1/L 99/O 10/N 100/T 7>>endobj \
            10 0 obj<</Type/Page>>endobj 11 0 obj<</Type/ObjStm/N 3>>endobj";
        assert_eq!(pdf_pages(linear), Some(100));
        let packed = b"%PDF-1.5\n1 0 obj<</Type/Page>>endobj 2 0 obj<</Type/ObjStm>>endobj";
        assert_eq!(pdf_pages(packed), None);
        // A file of nothing but types is read once.
        let types = [b"%PDF-1.4".as_slice(), &b"/Type/Pages".repeat(200_000)].concat();
        assert_eq!(pdf_pages(&types), None);
        assert_eq!(pdf_pages(b"/Type /Page"), None);
    }

    #[test]
    fn pages_cost_what_providers_say_and_nothing_is_said_for_others() {
        assert_eq!(document_tokens("claude-sonnet-4-5", 3), Some(6_750));
        assert_eq!(document_tokens("google/gemini-2.5-pro", 3), Some(774));
        assert_eq!(document_tokens("gemini-3.1-pro", 3), Some(1_680));
        assert_eq!(document_tokens("gpt-4o", 3), None);
        assert_eq!(document_tokens("claude-sonnet-4-5", u64::MAX), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(words in proptest::collection::vec(0_usize..9, 0..40)) {
            let of = ["/Type", "/Pages", "/Page", "/Count", " 9", "obj", "endobj", "\u{ff}", "99999999999999999999"];
            let text: String = words.iter().map(|word| of[*word]).collect();
            let _ = pdf_pages(format!("%PDF-{text}").as_bytes());
        }
    }
}
