use std::fmt;

use flate2::{Decompress, FlushDecompress, Status};

use crate::{Error, ErrorKind, Result};

/// What a sender leaves out at the end of a message.
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
/// So many bytes are unpacked at a time.
const PIECE: usize = 32 << 10;

/// How the messages of one direction are packed: `permessage-deflate` of RFC 7692.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deflate {
    /// Whether each message is packed by itself, without the ones before it.
    pub no_context_takeover: bool,
}

impl Deflate {
    /// What both sides agreed on: how the client packs, and how the server does. `None` where
    /// messages are not packed. Takes the `Sec-WebSocket-Extensions` of the server's answer. O(its
    /// length).
    ///
    /// ```
    /// use afterimage_record::wire::websocket::Deflate;
    ///
    /// let agreed = Deflate::agreed("permessage-deflate; server_no_context_takeover").unwrap();
    /// assert_eq!((agreed.0.no_context_takeover, agreed.1.no_context_takeover), (false, true));
    /// assert_eq!(Deflate::agreed(""), None);
    /// ```
    pub fn agreed(extensions: &str) -> Option<(Self, Self)> {
        let mut parts = extensions.split(',').map(|of| of.split(';').map(str::trim));
        let parameters = parts.find_map(|mut of| {
            let name = of.next().unwrap_or_default();
            name.eq_ignore_ascii_case("permessage-deflate").then(|| of.collect::<Vec<_>>())
        })?;
        let has = |name: &str| parameters.iter().any(|of| of.eq_ignore_ascii_case(name));
        let of = |name: &str| Self { no_context_takeover: has(name) };
        Some((of("client_no_context_takeover"), of("server_no_context_takeover")))
    }
}

/// Unpacks the messages of one direction.
pub(super) struct Inflater {
    deflate: Deflate,
    stream: Decompress,
    piece: Vec<u8>,
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inflater").field("deflate", &self.deflate).finish_non_exhaustive()
    }
}

impl Inflater {
    pub(super) fn new(deflate: Deflate) -> Self {
        Self { deflate, stream: Decompress::new(false), piece: vec![0; PIECE] }
    }

    /// Unpacks the next bytes of a message.
    pub(super) fn push(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let unsound =
            || Error::new(ErrorKind::Shape, "expected a packed message, found other bytes");
        loop {
            let before = (self.stream.total_in(), self.stream.total_out());
            let status = self
                .stream
                .decompress(bytes, &mut self.piece, FlushDecompress::None)
                .map_err(|_| unsound())?;
            let since = |now: u64, then: u64| usize::try_from(now - then).unwrap_or(usize::MAX);
            let read = since(self.stream.total_in(), before.0);
            let written = since(self.stream.total_out(), before.1);
            take(self.piece.get(..written).unwrap_or_default())?;
            bytes = bytes.get(read..).unwrap_or_default();
            match status {
                // A block that says it is the last one: what follows begins anew.
                Status::StreamEnd => self.stream.reset(false),
                _ if read == 0 && written == 0 => {
                    return if bytes.is_empty() { Ok(()) } else { Err(unsound()) };
                }
                _ => {}
            }
            if bytes.is_empty() && written < PIECE {
                return Ok(());
            }
        }
    }

    /// Unpacks what is left of a message.
    pub(super) fn end(&mut self, take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.push(&TAIL, take)?;
        if self.deflate.no_context_takeover {
            self.stream.reset(false);
        }
        Ok(())
    }
}
