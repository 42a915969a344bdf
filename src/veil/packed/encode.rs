//! From a frame to its bytes.

use super::bytes::ByteWriter;
use crate::{
    id::FacetType,
    json::{self, Object, ObjectExt, Value},
    snapshot::{ChunkRef, FrameSnapshot},
    veil::{
        ContentForm, Facet, FacetChange, FacetOp, FacetPart, Frame, Imported, Media, PartContent,
        PartSource, Source,
    },
};

/// How many chunks after the last one are looked at for that of a facet.
const NEAR: usize = 8;

/// The types of facets that are a number.
pub(super) const TYPES: [FacetType; 11] = [
    FacetType::EVENT,
    FacetType::SPEECH,
    FacetType::THOUGHT,
    FacetType::ACTION,
    FacetType::RESULT,
    FacetType::STATE,
    FacetType::SYSTEM,
    FacetType::SUMMARY,
    FacetType::IMAGE,
    FacetType::OPAQUE,
    FacetType::UNKNOWN,
];

/// What a frame may have.
pub(super) mod has {
    pub(in super::super) const EVENTS: u8 = 1;
    pub(in super::super) const ACTIVE_STREAM: u8 = 1 << 1;
    pub(in super::super) const IMPORTED: u8 = 1 << 2;
    pub(in super::super) const EXTRA: u8 = 1 << 3;
    pub(in super::super) const TIMESTAMP: u8 = 1 << 4;
    pub(in super::super) const UUID: u8 = 1 << 5;
    /// And a facet.
    pub(in super::super) const PART: u8 = 1;
    pub(in super::super) const REST: u8 = 1 << 1;
    pub(in super::super) const CHILDREN: u8 = 1 << 2;
    pub(in super::super) const DISPLAY_NAME: u8 = 1 << 3;
}

/// Where the value of a text is.
pub(super) mod is {
    pub(in super::super) const ABSENT: u8 = 0;
    pub(in super::super) const WRITTEN: u8 = 1;
    /// The text of a chunk.
    pub(in super::super) const IN_CHUNK: u8 = 2;
    /// Of parameters: what the arguments are as JSON.
    pub(in super::super) const PARSED: u8 = 3;
}

/// Writes the bytes of a frame without its snapshots, which say what `snapshot` says by its chunks.
/// Answers with whether some of it is JSON, which may be too deep to be read again.
pub(super) fn encode(out: &mut ByteWriter, frame: &Frame, snapshot: &FrameSnapshot) -> bool {
    let mut encoder = Encoder { out, snapshot, next: 0, has_json: false };
    encoder.frame(frame);
    encoder.has_json
}

struct Encoder<'f> {
    out: &'f mut ByteWriter,
    snapshot: &'f FrameSnapshot,
    /// The chunk after that of the last facet.
    next: usize,
    has_json: bool,
}

impl<'f> Encoder<'f> {
    fn frame(&mut self, frame: &Frame) {
        match &frame.source {
            Source::User => self.out.byte(0),
            Source::Agent => self.out.byte(1),
            Source::Environment => self.out.byte(2),
            Source::System => self.out.byte(3),
            Source::Other(name) => {
                self.out.byte(4);
                self.out.text(name);
            }
        }
        let flag = |flag: u8, is_there: bool| if is_there { flag } else { 0 };
        self.out.byte(
            flag(has::EVENTS, !frame.events.is_empty())
                | flag(has::ACTIVE_STREAM, frame.active_stream.is_some())
                | flag(has::IMPORTED, frame.imported.is_some())
                | flag(has::EXTRA, !frame.extra.is_empty())
                | flag(has::TIMESTAMP, frame.timestamp.is_some())
                | flag(has::UUID, frame.uuid.is_some()),
        );
        frame.timestamp.iter().chain(&frame.uuid).for_each(|text| self.out.text(text));
        if !frame.events.is_empty() {
            let events: Value = frame.events.iter().cloned().collect();
            self.json(&events);
        }
        frame.active_stream.iter().for_each(|value| self.json(value));
        if let Some(imported) = &frame.imported {
            self.imported(imported);
        }
        if !frame.extra.is_empty() {
            self.object(&frame.extra);
        }
        self.out.number(frame.ops.len() as u64);
        frame.ops.iter().for_each(|op| self.op(op));
    }

    fn object(&mut self, object: &Object) {
        self.json(&Value::Object(object.clone()));
    }

    fn json(&mut self, value: &Value) {
        self.has_json = true;
        self.out.text(&value.to_string());
    }

    fn imported(&mut self, imported: &Imported) {
        let Imported { line, file, is_message, role, kind, form, members, .. } = imported;
        let mut extra = imported.answers();
        extra.put_unknown(&imported.extra);
        self.out.number(*line);
        let has_extra = u8::from(!extra.is_empty());
        let has_members = u8::from(!members.is_empty());
        let has_file = u8::from(file.is_some());
        let flags = u8::from(*is_message) | has_members << 1 | has_extra << 2 | has_file << 3;
        self.out.byte(flags);
        file.iter().for_each(|file| self.out.text(file));
        self.out.maybe(role.as_deref());
        self.out.maybe(kind.as_deref());
        self.out.maybe(form.map(ContentForm::as_str));
        if !members.is_empty() {
            self.object(members);
        }
        if !extra.is_empty() {
            self.object(&extra);
        }
    }

    fn op(&mut self, op: &FacetOp) {
        let FacetChange::Add(facet) = &op.change else {
            self.out.byte(2);
            return self.json(&op.to_json());
        };
        self.out.byte(u8::from(!op.extra.is_empty()));
        if !op.extra.is_empty() {
            self.object(&op.extra);
        }
        self.facet(facet);
    }

    /// The next chunk of a facet with this text, or the next of the facet at all; and whether it has
    /// this text.
    fn chunk_of(&self, facet: &Facet, text: &str) -> Option<(usize, ChunkRef<'f>, bool)> {
        let near =
            (self.next..self.next + NEAR).map_while(|at| Some((at, self.snapshot.chunk(at)?)));
        let mut own = near.filter(|(_, chunk)| chunk.facet_ids().next() == Some(facet.id.as_str()));
        let (at, first) = own.next()?;
        if first.content() == text {
            return Some((at, first, true));
        }
        let found = own.find(|(_, chunk)| chunk.content() == text);
        Some(found.map_or((at, first, false), |(at, chunk)| (at, chunk, true)))
    }

    fn facet(&mut self, facet: &Facet) {
        let call = facet.call();
        let written = call.and_then(|call| match (call.arguments, call.parameters) {
            (Some(arguments), _) => Some(arguments.to_owned()),
            (None, parameters) => parameters.map(Value::to_string),
        });
        let text = written.as_deref().filter(|_| facet.content.is_empty());
        let text = text.unwrap_or(&facet.content);
        let found = self.chunk_of(facet, text);
        let has_content = match found {
            Some((_, _, has_text)) if text.len() == facet.content.len() => has_text,
            found => found.is_some_and(|(_, chunk, _)| chunk.content() == facet.content),
        };
        let chunk = found.map(|(at, chunk, _)| (at, chunk));
        if let Some((at, _)) = chunk {
            self.next = at + 1;
        }
        let rest = rest_of(facet);
        let flag = |flag: u8, is_there: bool| if is_there { flag } else { 0 };
        self.out.byte(
            flag(has::PART, facet.part.is_some())
                | flag(has::REST, !rest.is_empty())
                | flag(has::CHILDREN, !facet.children.is_empty())
                | flag(has::DISPLAY_NAME, facet.display_name.is_some()),
        );
        if let Some((at, _)) = chunk {
            self.out.number(at as u64 + 1);
        } else {
            self.out.number(0);
            self.out.text(&facet.id);
        }
        if let Some(number) = TYPES.iter().position(|known| *known == facet.facet_type) {
            self.out.byte(number as u8);
        } else {
            self.out.byte(u8::MAX);
            self.out.text(&facet.facet_type);
        }
        self.chunk_text(Some(&facet.content), has_content);
        facet.display_name.iter().for_each(|name| self.out.text(name));
        if let Some(part) = &facet.part {
            self.part(part, chunk);
        }
        if !rest.is_empty() {
            self.object(&rest);
        }
        if !facet.children.is_empty() {
            self.out.number(facet.children.len() as u64);
            facet.children.iter().for_each(|child| self.facet(child));
        }
    }

    /// A text, which may be that of the facet's chunk.
    fn chunk_text(&mut self, text: Option<&str>, is_in_chunk: bool) {
        match text {
            Some(_) if is_in_chunk => self.out.byte(is::IN_CHUNK),
            None | Some("") => self.out.byte(is::ABSENT),
            Some(text) => {
                self.out.byte(is::WRITTEN);
                self.out.text(text);
            }
        }
    }

    fn part(&mut self, part: &FacetPart, chunk: Option<(usize, ChunkRef<'_>)>) {
        let FacetPart { content, source, extra } = part;
        let has_source = *source != PartSource::default() || !extra.is_empty();
        let (number, media): (u8, Option<&Media>) = match content {
            PartContent::Text => (0, None),
            PartContent::Call { .. } => (1, None),
            PartContent::Result { .. } => (2, None),
            PartContent::Reasoning => (3, None),
            PartContent::Image(media) => (4, Some(media)),
            PartContent::Audio(media) => (5, Some(media)),
            PartContent::Document(media) => (6, Some(media)),
            PartContent::Compaction => (7, None),
            PartContent::ToolDefinition { .. } => (8, None),
            PartContent::Opaque => (9, None),
        };
        self.out.byte(number | u8::from(has_source) << 7);
        if let Some(Media { media_type, bytes, tokens }) = media {
            self.out.maybe(media_type.as_deref());
            for number in [bytes, tokens] {
                self.out.byte(u8::from(number.is_some()));
                self.out.number(number.unwrap_or_default());
            }
        }
        match content {
            PartContent::Call { id, name, parameters, arguments } => {
                self.out.maybe(id.as_deref());
                self.out.text(name);
                let arguments = arguments.as_deref();
                match arguments {
                    // An empty text is not the same as none.
                    Some("") => {
                        self.out.byte(is::WRITTEN);
                        self.out.text("");
                    }
                    arguments => {
                        let has = |text| chunk.is_some_and(|(_, chunk)| chunk.content() == text);
                        self.chunk_text(arguments, arguments.is_some_and(has));
                    }
                }
                self.parameters(parameters.as_ref(), arguments, chunk);
            }
            PartContent::Result { answers, tool, outcome } => {
                self.out.maybe(answers.as_deref());
                self.out.maybe(tool.as_deref());
                self.out.byte(*outcome as u8);
            }
            PartContent::ToolDefinition { name } => self.out.text(name),
            _ => {}
        }
        if has_source {
            let rest = FacetPart {
                content: PartContent::Text,
                source: source.clone(),
                extra: extra.clone(),
            };
            self.json(&rest.to_json());
        }
    }

    fn parameters(
        &mut self,
        parameters: Option<&Value>,
        arguments: Option<&str>,
        chunk: Option<(usize, ChunkRef<'_>)>,
    ) {
        let Some(parameters) = parameters else { return self.out.byte(is::ABSENT) };
        let written = parameters.to_string();
        let is_parsed = |text: &str| {
            // The order of members counts, which equality does not look at.
            let is_same = |value: &Value| *value == *parameters && value.to_string() == written;
            json::read_mended(text.as_bytes()).is_ok_and(|(value, _)| is_same(&value))
        };
        if arguments.is_some_and(is_parsed) {
            return self.out.byte(is::PARSED);
        }
        if !chunk.is_some_and(|(_, chunk)| chunk.content() == written && is_parsed(&written)) {
            self.out.byte(is::WRITTEN);
            return self.json(parameters);
        }
        self.out.byte(is::IN_CHUNK);
    }
}

/// What few facets have, as in the wire form.
fn rest_of(facet: &Facet) -> Object {
    let is_plain = facet.state.is_none()
        && facet.tags.is_empty()
        && facet.attributes.is_empty()
        && facet.scopes.is_empty()
        && facet.stream_id.is_none()
        && facet.stream_type.is_none()
        && facet.agent_id.is_none()
        && facet.agent_name.is_none()
        && !facet.ephemeral
        && facet.saliency.is_none()
        && facet.target_facet_ids.is_empty()
        && facet.extra.is_empty();
    if is_plain {
        return Object::new();
    }
    let rest = Facet {
        state: facet.state.clone(),
        tags: facet.tags.clone(),
        attributes: facet.attributes.clone(),
        scopes: facet.scopes.clone(),
        stream_id: facet.stream_id.clone(),
        stream_type: facet.stream_type.clone(),
        agent_id: facet.agent_id.clone(),
        agent_name: facet.agent_name.clone(),
        ephemeral: facet.ephemeral,
        saliency: facet.saliency.clone(),
        target_facet_ids: facet.target_facet_ids.clone(),
        extra: facet.extra.clone(),
        ..Facet::new("", facet.facet_type.clone(), "")
    };
    match rest.to_json() {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
