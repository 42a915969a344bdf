//! A veil that replays from a journal.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{
    Error, ErrorKind, Result,
    id::FrameSeq,
    journal::{self, Replay},
    json::{Fields, Object, ObjectExt, Value},
    veil::{Facet, FacetOp, Frame, Source, Veil},
};

/// The veil that the frames of a journal lead to.
///
/// ```
/// use afterimage::{
///     id::{FacetType, Millis}, journal::*, session::bridge::ReplayedVeil,
///     veil::{Facet, FacetOp, Frame, Source},
/// };
///
/// let mut journal = Journal::in_memory(&Memory::new(), JournalOptions::default());
/// let session = SessionName::new("bridge")?;
/// let (mut live, _) = journal.live::<ReplayedVeil>(&session, SnapshotPolicy::Events(100))?;
///
/// let hull = Facet::new("hull", FacetType::STATE, "98 %");
/// let frame = Frame::new(0, Source::Environment).with(FacetOp::add(hull));
/// journal.record(&mut live, EventId::new("frame-0")?, &frame, Millis::new(0))?;
/// assert_eq!(live.state().veil().get("hull").unwrap().content, "98 %");
/// # Ok::<(), afterimage::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ReplayedVeil {
    veil: Veil,
    last: Option<FrameSeq>,
}

impl ReplayedVeil {
    /// The version of the wire form.
    const VERSION: u64 = 1;

    /// What holds after the newest frame.
    pub fn veil(&self) -> &Veil {
        &self.veil
    }

    /// The newest frame.
    pub fn last(&self) -> Option<FrameSeq> {
        self.last
    }

    /// The version, the facets, the tags that content must not forge, and the newest frame.
    /// O(size).
    pub fn to_json(&self) -> Value {
        let mut tags: Vec<&str> = self.veil.tags().iter().collect();
        tags.sort_unstable();
        let mut object = Object::new();
        object.put("version", Self::VERSION);
        object.put("facets", self.veil.facets().iter().map(|f| f.to_json()).collect::<Value>());
        object.put("tags", tags.into_iter().collect::<Value>());
        object.put_some("lastFrame", self.last.map(FrameSeq::get));
        object.into()
    }

    /// Reads what [`ReplayedVeil::to_json`] gives. O(n log n) in the facets.
    ///
    /// # Errors
    /// [`ErrorKind::Version`] for another version; [`ErrorKind::Shape`], with the path.
    pub fn from_json(value: Value) -> Result<Self> {
        let mut fields = Fields::of(value, "a veil")?;
        let facets = fields.array("facets")?.unwrap_or_default();
        let tags = fields.strings("tags")?.unwrap_or_default();
        let last = fields.u64("lastFrame")?.map(FrameSeq::new);
        let version = fields.u64("version")?;
        if version != Some(Self::VERSION) {
            let found = version.map_or_else(|| "none".to_owned(), |found| found.to_string());
            let message = format!("expected a veil of version {}, found {found}", Self::VERSION);
            return Err(Error::new(ErrorKind::Version, message).under("version"));
        }
        let facet = |(index, value)| {
            Facet::from_json(value).map_err(|error| error.under(index).under("facets"))
        };
        let ops = facets.into_iter().enumerate().map(|at| Ok(FacetOp::add(facet(at)?)));
        let mut frame = Frame::new(0, Source::System);
        frame.ops = ops.collect::<Result<_>>()?;
        let mut veil = Veil::with_display_names(tags);
        veil.apply(&frame)?;
        Ok(Self { veil, last })
    }

    fn follows(&self, frame: &Frame) -> Result<()> {
        match self.last {
            Some(last) if frame.sequence <= last => {
                let message = format!("expected a frame after {last}, found {}", frame.sequence);
                let error = Error::new(ErrorKind::Sequence, message);
                Err(error.at_frame(frame.sequence.get()))
            }
            _ => Ok(()),
        }
    }
}

impl Serialize for ReplayedVeil {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ReplayedVeil {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::from_json(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Replay for ReplayedVeil {
    type Event = Frame;
    const SCHEMA: u32 = 1;

    fn kind(_: &Frame) -> &'static str {
        "frame"
    }

    fn knows(kind: &str) -> bool {
        kind == "frame"
    }

    fn check(&self, frame: &Frame) -> journal::Result<()> {
        self.follows(frame)?;
        Ok(self.veil.check(frame)?)
    }

    fn apply(&mut self, _: u64, frame: &Frame) -> journal::Result<()> {
        self.follows(frame)?;
        self.veil.apply(frame)?;
        self.last = Some(frame.sequence);
        Ok(())
    }
}
