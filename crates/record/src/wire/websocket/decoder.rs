use crate::{
    Error, ErrorKind, Result,
    wire::websocket::deflate::{Deflate, Inflater},
};

/// The longest head of a frame.
const MOST_HEAD: usize = 14;
/// A message that unpacks to more is not decoded, whatever is kept of it.
const MOST_UNPACKED: u64 = 256 << 20;

/// A message of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Text, or bytes.
    Data {
        /// Its first bytes, or all of them, unpacked.
        bytes: Vec<u8>,
        /// How many bytes it has.
        total: u64,
    },
    /// The last message of its sender.
    Close,
}

/// Reads the bytes of one direction of a WebSocket: frames, fragments, masks (RFC 6455), and
/// messages that are packed (RFC 7692).
///
/// Takes bytes in any pieces. Keeps the unpacked bytes of one message, `most` of them, and a window of
/// 32 KiB.
///
/// ```
/// use afterimage_record::wire::websocket::{Decoder, Message};
///
/// let mut messages = Vec::new();
/// let mut decoder = Decoder::new(None, 1 << 20);
/// decoder.push(b"\x81\x02hi\x88\x00", |message| messages.push(message))?;
/// let text = Message::Data { bytes: b"hi".to_vec(), total: 2 };
/// assert_eq!(messages, [text, Message::Close]);
/// # Ok::<(), afterimage_record::Error>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    most: usize,
    inflater: Option<Inflater>,
    /// The head of the next frame, as far as it has come.
    head: Vec<u8>,
    frame: Option<Frame>,
    /// The message that has begun.
    message: Option<Unfinished>,
    /// Unmasked bytes, for a moment.
    plain: Vec<u8>,
}

/// A frame whose head has come.
#[derive(Clone, Copy, Debug)]
struct Frame {
    is_last: bool,
    kind: Kind,
    mask: Option<[u8; 4]>,
    /// How many bytes of the payload came, and how many are to come.
    passed: u64,
    left: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Close,
    /// Pings and pongs.
    Signal,
}

#[derive(Debug)]
struct Unfinished {
    is_packed: bool,
    bytes: Vec<u8>,
    total: u64,
}

impl Unfinished {
    fn push(&mut self, bytes: &[u8], most: usize) -> Result<()> {
        self.total += bytes.len() as u64;
        if self.total > MOST_UNPACKED {
            return Err(Error::new(ErrorKind::Limit, "expected a message of at most 256 MiB"));
        }
        let room = most.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        Ok(())
    }
}

impl Decoder {
    /// A decoder of messages that are packed as agreed, of each of which it keeps `most` bytes.
    pub fn new(deflate: Option<Deflate>, most: usize) -> Self {
        let (head, frame, message, plain) = Default::default();
        Self { most, inflater: deflate.map(Inflater::new), head, frame, message, plain }
    }

    /// Takes the next bytes, and hands over the messages that end in them. O(bytes), and what they
    /// unpack to.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where they are no frames, or no sound packed ones; [`ErrorKind::Limit`] for
    /// a message of more than 256 MiB. After an error the decoder can read nothing more.
    pub fn push(&mut self, mut bytes: &[u8], mut take: impl FnMut(Message)) -> Result<()> {
        loop {
            let frame = match self.frame {
                Some(frame) => frame,
                None => match self.head(&mut bytes)? {
                    Some(frame) => frame,
                    None => return Ok(()),
                },
            };
            let frame = self.payload(frame, &mut bytes)?;
            self.frame = Some(frame);
            if frame.left > 0 {
                return Ok(());
            }
            self.frame = None;
            self.end(frame, &mut take)?;
        }
    }

    /// Reads the head of a frame; `None` where more of it is to come.
    fn head(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame>> {
        while let Some((byte, rest)) = bytes.split_first() {
            self.head.push(*byte);
            *bytes = rest;
            if let Some(frame) = self.frame_of_head()? {
                self.head.clear();
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// The frame that the head is of, where all of it is there.
    fn frame_of_head(&mut self) -> Result<Option<Frame>> {
        let shape = |message: &str| Error::new(ErrorKind::Shape, message);
        debug_assert!(self.head.len() <= MOST_HEAD);
        let [first, second, rest @ ..] = self.head.as_slice() else { return Ok(None) };
        let (is_last, is_packed) = (first & 0x80 != 0, first & 0x40 != 0);
        let (is_masked, short) = (second & 0x80 != 0, second & 0x7f);
        let (length, rest) = match short {
            126 => match rest.split_first_chunk::<2>() {
                Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), rest),
                None => return Ok(None),
            },
            127 => match rest.split_first_chunk::<8>() {
                Some((length, rest)) => (u64::from_be_bytes(*length), rest),
                None => return Ok(None),
            },
            short => (u64::from(short), rest),
        };
        let mask = match (is_masked, rest.first_chunk::<4>()) {
            (false, _) => None,
            (true, Some(mask)) => Some(*mask),
            (true, None) => return Ok(None),
        };
        if length > i64::MAX as u64 || first & 0x30 != 0 {
            return Err(shape("expected a frame of a WebSocket"));
        }
        let opcode = first & 0x0f;
        let kind = match opcode {
            0..=2 => Kind::Data,
            8 => Kind::Close,
            9 | 10 => Kind::Signal,
            _ => return Err(shape("expected a frame of a known kind")),
        };
        if kind == Kind::Data {
            self.begin(opcode == 0, is_packed)?;
        } else if !is_last || is_packed || length > 125 {
            return Err(shape("expected a control frame of 125 bytes at most, in one piece"));
        }
        Ok(Some(Frame { is_last, kind, mask, passed: 0, left: length }))
    }

    /// Begins a message, or goes on with it.
    fn begin(&mut self, goes_on: bool, is_packed: bool) -> Result<()> {
        let shape = |message: &str| Err(Error::new(ErrorKind::Shape, message));
        match (&self.message, goes_on) {
            (None, true) => shape("expected the first frame of a message, found a later one"),
            (Some(_), false) => shape("expected the next frame of a message, found a first one"),
            (Some(_), true) if is_packed => shape("expected the mark of packing in a first frame"),
            (Some(_), true) => Ok(()),
            (None, false) if is_packed && self.inflater.is_none() => {
                shape("expected a message that is not packed, as nothing else was agreed on")
            }
            (None, false) => {
                self.message = Some(Unfinished { is_packed, bytes: Vec::new(), total: 0 });
                Ok(())
            }
        }
    }

    /// Takes the payload of a frame, as far as it is there.
    fn payload(&mut self, frame: Frame, bytes: &mut &[u8]) -> Result<Frame> {
        let here = usize::try_from(frame.left).unwrap_or(usize::MAX).min(bytes.len());
        let Some((payload, rest)) = bytes.split_at_checked(here) else { return Ok(frame) };
        *bytes = rest;
        if frame.kind == Kind::Data {
            self.plain.clear();
            self.plain.extend_from_slice(payload);
            if let Some(mask) = frame.mask {
                let from = usize::try_from(frame.passed % 4).unwrap_or_default();
                let mask = mask.iter().cycle().skip(from);
                self.plain.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
            }
            if let Some(message) = &mut self.message {
                let most = self.most;
                match &mut self.inflater {
                    Some(inflater) if message.is_packed => {
                        inflater.push(&self.plain, |bytes| message.push(bytes, most))?;
                    }
                    _ => message.push(&self.plain, most)?,
                }
            }
        }
        let here = here as u64;
        Ok(Frame { passed: frame.passed + here, left: frame.left - here, ..frame })
    }

    /// A frame has ended, and with it maybe its message.
    fn end(&mut self, frame: Frame, take: &mut impl FnMut(Message)) -> Result<()> {
        match frame.kind {
            Kind::Close => take(Message::Close),
            Kind::Data if frame.is_last => {
                let Some(mut message) = self.message.take() else { return Ok(()) };
                let most = self.most;
                if let Some(inflater) = self.inflater.as_mut().filter(|_| message.is_packed) {
                    inflater.end(|bytes| message.push(bytes, most))?;
                }
                let Unfinished { bytes, total, .. } = message;
                take(Message::Data { bytes, total });
            }
            Kind::Data | Kind::Signal => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
