//! From its bytes to a frame.

use std::sync::Arc;

use super::{
    bytes::ByteReader,
    encode::{TYPES, has, is},
};
use crate::{
    id::{FacetId, FacetType},
    json::{self, Fields, Object, Value},
    snapshot::SealedSegment,
    veil::{
        CallOutcome, ContentForm, Facet, FacetChange, FacetOp, FacetPart, Frame, Imported, Media,
        PartContent, Source,
    },
};

/// Reads the bytes of a frame that lies in a segment.
pub(super) struct Decoder<'b> {
    bytes: ByteReader<'b>,
    segment: &'b SealedSegment,
    row: u32,
}

impl<'b> Decoder<'b> {
    pub(super) fn new(bytes: &'b [u8], segment: &'b SealedSegment, row: u32) -> Self {
        Self { bytes: ByteReader::new(bytes), segment, row }
    }

    /// The source alone.
    pub(super) fn source(&mut self) -> Option<Source> {
        Some(match self.bytes.byte()? {
            0 => Source::User,
            1 => Source::Agent,
            2 => Source::Environment,
            3 => Source::System,
            _ => Source::Other(self.bytes.text()?.into()),
        })
    }

    /// The frame without its snapshots.
    pub(super) fn frame(mut self) -> Option<Frame> {
        let source = self.source()?;
        let flags = self.bytes.byte()?;
        let has = |flag: u8| flags & flag != 0;
        let mut frame = Frame::new(self.segment.sequence(self.row), source);
        if has(has::TIMESTAMP) {
            frame.timestamp = Some(self.bytes.text()?.to_owned());
        }
        if has(has::UUID) {
            frame.uuid = Some(self.bytes.text()?.to_owned());
        }
        if has(has::EVENTS) {
            let Value::Array(events) = self.value()? else { return None };
            frame.events = events;
        }
        if has(has::ACTIVE_STREAM) {
            frame.active_stream = Some(self.value()?);
        }
        if has(has::IMPORTED) {
            frame.imported = Some(Box::new(self.imported()?));
        }
        if has(has::EXTRA) {
            frame.extra = self.object()?;
        }
        let count = self.bytes.number()?;
        frame.ops = (0..count).map(|_| self.op()).collect::<Option<_>>()?;
        Some(frame)
    }

    /// The id of the facet that this op adds. Reads the ops before it.
    pub(super) fn facet_id(mut self, op: u32) -> Option<&'b str> {
        self.source()?;
        let flags = self.bytes.byte()?;
        let texts = [has::TIMESTAMP, has::UUID, has::EVENTS, has::ACTIVE_STREAM];
        for _ in texts.into_iter().filter(|flag| flags & flag != 0) {
            self.bytes.text()?;
        }
        if flags & has::IMPORTED != 0 {
            self.pass_imported()?;
        }
        if flags & has::EXTRA != 0 {
            self.bytes.text()?;
        }
        self.bytes.number()?;
        for _ in 0..op {
            self.op()?;
        }
        match self.bytes.byte()? {
            0 => {}
            1 => drop(self.bytes.text()?),
            _ => return None,
        }
        self.bytes.byte()?;
        let chunk = self.chunk()?;
        self.id(chunk)
    }

    fn value(&mut self) -> Option<Value> {
        json::read(self.bytes.text()?.as_bytes()).ok()
    }

    fn object(&mut self) -> Option<Object> {
        match self.value()? {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    fn imported(&mut self) -> Option<Imported> {
        let line = self.bytes.number()?;
        let flags = self.bytes.byte()?;
        let file = if flags & 8 == 0 { None } else { Some(self.bytes.text()?.into()) };
        let mut text = || Some(self.bytes.maybe()?.map(Box::from));
        let (role, kind): (Option<Box<str>>, Option<Box<str>>) = (text()?, text()?);
        let form = self.bytes.maybe()?.and_then(ContentForm::from_name);
        let members = if flags & 2 == 0 { Object::new() } else { self.object()? };
        let is_message = flags & 1 != 0;
        let imported =
            Imported { line, file, is_message, role, kind, form, members, ..Imported::default() };
        if flags & 4 == 0 {
            return Some(imported);
        }
        imported.with_answers(Fields::of(self.value()?, "the rest of an import").ok()?).ok()
    }

    /// Passes over what [`Decoder::imported`] reads.
    fn pass_imported(&mut self) -> Option<()> {
        self.bytes.number()?;
        let flags = self.bytes.byte()?;
        if flags & 8 != 0 {
            self.bytes.text()?;
        }
        for _ in ["role", "kind", "form"] {
            self.bytes.maybe()?;
        }
        for _ in [2, 4].into_iter().filter(|flag| flags & flag != 0) {
            self.bytes.text()?;
        }
        Some(())
    }

    fn op(&mut self) -> Option<FacetOp> {
        let kind = self.bytes.byte()?;
        if kind == 2 {
            return FacetOp::from_json(self.value()?).ok();
        }
        let extra = if kind == 1 { self.object()? } else { Object::new() };
        let change = FacetChange::Add(Arc::new(self.facet()?));
        Some(FacetOp { change, extra })
    }

    fn facet(&mut self) -> Option<Facet> {
        let flags = self.bytes.byte()?;
        let has = |flag: u8| flags & flag != 0;
        let chunk = self.chunk()?;
        let id = FacetId::from(self.id(chunk)?);
        let facet_type = match self.bytes.byte()? {
            u8::MAX => FacetType::from(self.bytes.text()?),
            number => TYPES.get(usize::from(number))?.clone(),
        };
        let content = self.chunk_text(chunk)?.unwrap_or_default();
        let mut facet = Facet::new(id, facet_type, content);
        if has(has::DISPLAY_NAME) {
            facet.display_name = Some(self.bytes.text()?.to_owned());
        }
        if has(has::PART) {
            facet.part = Some(Box::new(self.part(chunk)?));
        }
        if has(has::REST) {
            let rest = self.object()?;
            let rest = Facet::from_json(rest.into()).ok()?;
            let Facet { id, facet_type, content, part, display_name, .. } = facet;
            facet = Facet { id, facet_type, content, part, display_name, ..rest };
        }
        if has(has::CHILDREN) {
            let count = self.bytes.number()?;
            facet.children = (0..count).map(|_| self.facet()).collect::<Option<_>>()?;
        }
        Some(facet)
    }

    /// The number of a facet's chunk, where it has one.
    #[expect(clippy::option_option, reason = "the outer one is the end of the bytes")]
    fn chunk(&mut self) -> Option<Option<u32>> {
        match self.bytes.number()? {
            0 => Some(None),
            at => u32::try_from(at - 1).ok().map(Some),
        }
    }

    /// The id of a facet, which its chunk has too.
    fn id(&mut self, chunk: Option<u32>) -> Option<&'b str> {
        match chunk {
            Some(at) => self.segment.chunk_facet(self.row, at),
            None => self.bytes.text(),
        }
    }

    #[expect(clippy::option_option, reason = "the outer one is the end of the bytes")]
    fn chunk_text(&mut self, chunk: Option<u32>) -> Option<Option<&'b str>> {
        Some(match self.bytes.byte()? {
            is::ABSENT => None,
            is::IN_CHUNK => Some(self.segment.chunk_text(self.row, chunk?)?),
            _ => Some(self.bytes.text()?),
        })
    }

    fn part(&mut self, chunk: Option<u32>) -> Option<FacetPart> {
        let kind = self.bytes.byte()?;
        let content = match kind & 0x7F {
            1 => {
                let id = self.bytes.maybe()?.map(Box::from);
                let name = self.bytes.text()?.into();
                let arguments = self.chunk_text(chunk)?;
                let parameters = match self.bytes.byte()? {
                    is::ABSENT => None,
                    is::WRITTEN => Some(self.value()?),
                    is::IN_CHUNK => Some(parsed(self.segment.chunk_text(self.row, chunk?)?)?),
                    _ => Some(parsed(arguments?)?),
                };
                PartContent::Call { id, name, parameters, arguments: arguments.map(Box::from) }
            }
            2 => PartContent::Result {
                answers: self.bytes.maybe()?.map(Box::from),
                tool: self.bytes.maybe()?.map(Box::from),
                outcome: *CallOutcome::ALL.get(usize::from(self.bytes.byte()?))?,
            },
            3 => PartContent::Reasoning,
            4 => PartContent::Image(self.media()?),
            5 => PartContent::Audio(self.media()?),
            6 => PartContent::Document(self.media()?),
            7 => PartContent::Compaction,
            8 => PartContent::ToolDefinition { name: self.bytes.text()?.into() },
            9 => PartContent::Opaque,
            _ => PartContent::Text,
        };
        if kind & 0x80 == 0 {
            return Some(FacetPart::new(content));
        }
        let rest = FacetPart::from_json(self.value()?).ok()?;
        Some(FacetPart { content, ..rest })
    }

    fn media(&mut self) -> Option<Media> {
        let media_type = self.bytes.maybe()?.map(Box::from);
        let mut number = || {
            let is_there = self.bytes.byte()? != 0;
            Some(Some(self.bytes.number()?).filter(|_| is_there))
        };
        Some(Media { media_type, bytes: number()?, tokens: number()? })
    }
}

fn parsed(text: &str) -> Option<Value> {
    json::read_mended(text.as_bytes()).ok().map(|(value, _)| value)
}
