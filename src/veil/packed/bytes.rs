//! Numbers and texts in bytes: numbers in groups of seven bits, texts behind their length.

/// Takes bytes.
#[derive(Default)]
pub(super) struct ByteWriter(Vec<u8>);

impl ByteWriter {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A text, or that there is none.
    pub(super) fn maybe(&mut self, text: Option<&str>) {
        match text {
            None => self.number(0),
            Some(text) => {
                self.number(text.len() as u64 + 1);
                self.0.extend_from_slice(text.as_bytes());
            }
        }
    }

    pub(super) fn finish(self) -> Box<[u8]> {
        self.0.into_boxed_slice()
    }
}

/// Gives bytes back. All is `None` past the end.
pub(super) struct ByteReader<'b>(&'b [u8]);

impl<'b> ByteReader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
            shift += 7;
        }
    }

    pub(super) fn text(&mut self) -> Option<&'b str> {
        let len = self.number()?;
        self.take(len)
    }

    #[expect(clippy::option_option, reason = "the outer one is the end of the bytes")]
    pub(super) fn maybe(&mut self) -> Option<Option<&'b str>> {
        match self.number()? {
            0 => Some(None),
            len => self.take(len - 1).map(Some),
        }
    }

    fn take(&mut self, len: u64) -> Option<&'b str> {
        let (text, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }
}
