//! Documents: their pages, and what providers say that a page costs.

/// What Anthropic says that the text of a page takes, 1,500 to 3,000 tokens by its density: the
/// middle.
const CLAUDE_PAGE: u64 = 2_250;
/// What Google says that a page takes.
const GEMINI_PAGE: u64 = 258;

/// The pages of a PDF: as many as its tree of pages counts, or else as are written openly. `None`
/// where the bytes are no PDF, or its objects are compressed and say neither.
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
    // The root of the tree counts all pages, and inner nodes fewer. Outlines have counts too.
    let counts = dictionaries(bytes, b"/Pages").filter_map(|dictionary| {
        let at = memchr::memmem::find(dictionary, b"/Count")? + b"/Count".len();
        let digits = dictionary.get(at..)?.trim_ascii_start();
        let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(digits.get(..length)?).ok()?.parse::<u64>().ok()
    });
    let counted = counts.max().filter(|pages| *pages > 0);
    counted
        .or_else(|| Some(dictionaries(bytes, b"/Page").count() as u64).filter(|pages| *pages > 0))
}

/// The dictionaries of a type, each from the object that it is to its end.
fn dictionaries<'b>(bytes: &'b [u8], name: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
    const TYPE: &[u8] = b"/Type";
    memchr::memmem::find_iter(bytes, TYPE).filter_map(move |at| {
        let rest = bytes.get(at + TYPE.len()..)?.trim_ascii_start();
        let next = rest.strip_prefix(name)?.first();
        if next.is_some_and(u8::is_ascii_alphanumeric) {
            return None;
        }
        let start = memchr::memmem::rfind(bytes.get(..at)?, b"obj").unwrap_or(0);
        let whole = bytes.get(start..)?;
        whole.get(..memchr::memmem::find(whole, b"endobj").unwrap_or(whole.len()))
    })
}

/// The tokens of a document of so many pages for a model: an estimate by what its provider says of
/// a page. `None` where it says nothing: OpenAI sends the text and an image of each page.
pub fn document_tokens(model: &str, pages: u64) -> Option<u64> {
    let model = model.rsplit_once('/').map_or(model, |(_, model)| model);
    let page = match model {
        _ if model.starts_with("claude-") => CLAUDE_PAGE,
        _ if model.starts_with("gemini-") => GEMINI_PAGE,
        _ => return None,
    };
    pages.checked_mul(page)
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
        assert_eq!(pdf_pages(b"/Type /Page"), None);
    }

    #[test]
    fn pages_cost_what_providers_say_and_nothing_is_said_for_others() {
        assert_eq!(document_tokens("claude-sonnet-4-5", 3), Some(6_750));
        assert_eq!(document_tokens("google/gemini-2.5-pro", 3), Some(774));
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
