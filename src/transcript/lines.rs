use std::io::BufRead;

use crate::{Error, ErrorKind, Result, json::MAX_BYTES};

/// The lines of an input, numbered from one, each bounded in length.
pub(super) struct Lines<R> {
    input: R,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, number: 0 }
    }

    /// The next line with its number, line feed included where it has one; `None` at the end.
    ///
    /// # Errors
    /// `Limit` for a line over 256 MiB, after which the input must not be read on; `Io`.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        let line = self.read()?;
        Ok(line.map(|mut line| {
            // A byte order mark says nothing about UTF-8 and is no part of the text.
            if self.number == 1 && line.starts_with(&[0xef, 0xbb, 0xbf]) {
                line.drain(..3);
            }
            (self.number, line)
        }))
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        self.number += 1;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::io(error, "cannot read").on_line(self.number)),
            };
            if buffer.is_empty() {
                return Ok((!line.is_empty()).then_some(line));
            }
            let (taken, ended) = match memchr::memchr(b'\n', buffer) {
                Some(at) => (at + 1, true),
                None => (buffer.len(), false),
            };
            line.extend_from_slice(buffer.get(..taken).unwrap_or_default());
            self.input.consume(taken);
            if line.len() > MAX_BYTES {
                let message = "a line of more than 256 MiB; the longest that is read is 256 MiB";
                return Err(Error::new(ErrorKind::Limit, message).on_line(self.number));
            }
            if ended {
                return Ok(Some(line));
            }
        }
    }
}

/// Whether a line holds nothing but white space.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}
