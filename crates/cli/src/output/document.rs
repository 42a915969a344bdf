//! A document on its way to a terminal.

use crate::visible;

/// Shows the controls of a document that comes in pieces, which may end inside a character.
#[derive(Default)]
pub(super) struct Document {
    /// The beginning of a character.
    cut: Vec<u8>,
}

impl Document {
    /// What is shown of the next bytes. What is no UTF-8 is shown as U+FFFD.
    pub(super) fn shown(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.cut);
        all.extend_from_slice(bytes);
        let mut shown = String::with_capacity(all.len());
        let mut rest = all.as_slice();
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => {
                    shown.push_str(&visible::lines(text));
                    return shown;
                }
                Err(error) => error,
            };
            let (valid, after) = rest.split_at_checked(error.valid_up_to()).unwrap_or((rest, &[]));
            shown.push_str(&visible::lines(&String::from_utf8_lossy(valid)));
            let Some(length) = error.error_len() else {
                self.cut = after.to_vec();
                return shown;
            };
            shown.push(char::REPLACEMENT_CHARACTER);
            rest = after.get(length..).unwrap_or_default();
        }
    }

    /// What is shown of a character that was not finished.
    pub(super) fn end(&mut self) -> &'static str {
        if std::mem::take(&mut self.cut).is_empty() { "" } else { "\u{fffd}" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_may_come_in_pieces_and_a_control_too() {
        let text = "é\u{9b}31m\u{202e}\u{1b}[2J日\n";
        for cut in 0..text.len() {
            let mut document = Document::default();
            let (head, tail) = text.as_bytes().split_at(cut);
            let shown = document.shown(head) + &document.shown(tail) + document.end();
            assert_eq!(shown, "é<U+009B>31m<U+202E>␛[2J日\n", "{cut}");
        }
    }

    #[test]
    fn a_byte_that_is_no_text_is_not_sent() {
        let mut document = Document::default();
        assert_eq!(document.shown(b"a\x9bb\xc3"), "a\u{fffd}b");
        assert_eq!(document.end(), "\u{fffd}");
    }
}
