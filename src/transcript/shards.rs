//! Payloads of Codex's trace bundles from schema 3 on: many in a file, which is packed with zstd.
//!
//! Unpacked it is records without anything between them: the length of an id (u16, little endian),
//! that of a body (u64), the id, and the body.

use std::{
    collections::HashMap,
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
};

use crate::{Error, ErrorKind, Result, json::MAX_BYTES};

/// What opens a file as it is unpacked.
type Opens = fn(&Path) -> io::Result<Box<dyn BufRead + Send>>;

/// The shards of a bundle, read when a payload of theirs is asked for. The last one is kept.
pub(super) struct Shards {
    folder: PathBuf,
    opens: Opens,
    kept: Option<(u64, Shard)>,
}

/// The payloads of a shard, and why it ends before its end.
#[derive(Default)]
struct Shard {
    payloads: HashMap<String, String>,
    damage: Option<Error>,
}

impl Shards {
    /// Those of a folder with payloads.
    pub(super) fn of(folder: PathBuf, opens: Opens) -> Self {
        Self { folder, opens, kept: None }
    }

    /// The payload with this id. Reads the shard whole, if it was not the last.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where the shard cannot be read as far as the payload, [`ErrorKind::Shape`]
    /// where it does not hold it.
    pub(super) fn payload(&mut self, number: u64, id: &str) -> Result<String> {
        let path = self.folder.join(format!("{number:06}.zst"));
        let kept = self.kept.take().filter(|(kept, _)| *kept == number);
        let kept = kept.unwrap_or_else(|| (number, Shard::read((self.opens)(&path))));
        let (_, shard) = self.kept.insert(kept);
        shard.payloads.get(id).cloned().ok_or_else(|| match &shard.damage {
            Some(damage) => Error::new(damage.kind(), damage.message()).in_file(&path),
            None => Error::new(ErrorKind::Shape, format!("no payload {id:?}")).in_file(&path),
        })
    }
}

impl Shard {
    /// The payloads up to the end, or to the first one that is cut: a client may still write.
    fn read(input: io::Result<Box<dyn BufRead + Send>>) -> Self {
        let mut shard = Self::default();
        if let Err(error) = input.and_then(|mut input| shard.fill(&mut input)) {
            shard.damage = Some(Error::io(error, "cannot read"));
        }
        shard
    }

    fn fill(&mut self, input: &mut impl BufRead) -> io::Result<()> {
        let mut left = MAX_BYTES as u64;
        loop {
            let (mut id, mut body) = ([0; 2], [0; 8]);
            if input.fill_buf()?.is_empty() {
                return Ok(());
            }
            input.read_exact(&mut id)?;
            input.read_exact(&mut body)?;
            let lengths = [u64::from(u16::from_le_bytes(id)), u64::from_le_bytes(body)];
            let length = lengths.iter().fold(0, |sum: u64, length| sum.saturating_add(*length));
            left = left.checked_sub(length).ok_or_else(|| {
                io::Error::new(io::ErrorKind::FileTooLarge, "payloads of more than 256 MiB")
            })?;
            let [id, body] = lengths.map(|length| text(input, length));
            self.payloads.insert(id?, body?);
        }
    }
}

/// So many bytes as text.
fn text(input: &mut impl Read, length: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    let read = input.take(length).read_to_end(&mut bytes)?;
    if read as u64 != length {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a payload is cut"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
