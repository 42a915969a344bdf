//! Numbers and texts in bytes: numbers in groups of seven bits, texts behind their length.

use std::ops::Range;

/// Takes bytes.
#[derive(Default)]
pub(super) struct ByteWriter(Vec<u8>);

/// Runs of bytes in one allocation, each known by its number.
#[derive(Clone, Default)]
pub(super) struct ByteRuns {
    bytes: Box<[u8]>,
    ends: Box<[u32]>,
}

impl ByteRuns {
    /// The runs of `bytes` that end there. Nothing is to be behind the last.
    pub(super) fn new(bytes: ByteWriter, ends: Vec<u32>) -> Self {
        Self { bytes: bytes.0.into(), ends: ends.into() }
    }

    /// The run with this number; empty where there is none.
    pub(super) fn get(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let end_of = |number: usize| self.ends.get(number).map(|end| *end as usize);
        let start = number.checked_sub(1).and_then(end_of).unwrap_or(0);
        end_of(number).and_then(|end| self.bytes.get(start..end)).unwrap_or_default()
    }

    /// The same with nothing in these runs.
    pub(super) fn without(&self, gone: &Range<u32>) -> Self {
        let (mut bytes, mut ends) = (ByteWriter::default(), Vec::with_capacity(self.ends.len()));
        for number in 0..self.ends.len() as u32 {
            if !gone.contains(&number) {
                bytes.0.extend_from_slice(self.get(number));
            }
            ends.push(bytes.0.len() as u32);
        }
        Self::new(bytes, ends)
    }
}

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

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes from `start` on.
    pub(super) fn from(&self, start: usize) -> &[u8] {
        self.0.get(start..).unwrap_or_default()
    }

    /// Takes all bytes from `len` on back.
    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
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
