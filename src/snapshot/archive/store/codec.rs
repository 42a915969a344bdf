//! The bytes of a segment's tables and text; `docs/FORMAT.md` describes them.

use std::sync::Arc;

use super::{
    super::{
        directory::Totals,
        frame_rows::FrameRow,
        names::Names,
        sealed_tables::SealedTables,
        tables::{ChunkRow, FIRST, Kind, PartKind, RareRows, SET, Tables},
        text::{KeptRun, SegmentText},
    },
    bytes::{Bytes, Put, damaged},
};
use crate::{
    Result,
    id::Role,
    json::{self, Object, Value},
    log::{pack, unpack},
    snapshot::{RenderedChunk, SnapshotIdentity},
    text::TextRange,
};

/// Stands for a text without dropped parts.
const WHOLE: u32 = u32::MAX;
/// The most bytes of ids, words and members of a segment, on top of what is stored of them.
const MOST_NAME_BYTES: u64 = 1 << 30;
/// More than a frame or a chunk takes in tables besides.
const MOST_ROW_BYTES: u64 = 256;

/// The payload of a segment's text.
pub(super) fn pack_text(text: &SegmentText) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.held().len() + 64);
    match text.kept() {
        None => bytes.put_u32(WHOLE),
        Some(runs) => {
            bytes.put_u32(runs.len() as u32);
            for run in runs {
                bytes.put_u32(run.start);
                bytes.put_u32(run.len);
            }
        }
    }
    bytes.extend(text.held().as_bytes());
    pack(&bytes)
}

/// The text of the segment with these tables.
pub(super) fn unpack_text(payload: &[u8], tables: &Tables) -> Result<SegmentText> {
    let whole = tables.frames.last().map_or(0, |frame| frame.text_end);
    // No more runs than chunks, since chunks are dropped whole.
    let runs = 8 * (tables.chunks.len() as u64 + 1);
    let bytes = unpack(payload, u64::from(whole) + runs + 4)?;
    let mut bytes = Bytes(&bytes);
    let kept = match bytes.u32()? {
        WHOLE => None,
        count => {
            let mut at = 0_u32;
            let mut column = bytes.column_u32(count.saturating_mul(2))?;
            let mut runs = Vec::with_capacity(count as usize);
            while let (Some(start), Some(len)) = (column.next(), column.next()) {
                let end = start.checked_add(len).filter(|end| *end <= whole);
                runs.push(KeptRun { start, len, at });
                at = end
                    .map(|_| at.wrapping_add(len))
                    .ok_or_else(|| damaged("a run in the text", "one past its end"))?;
            }
            Some(runs.into())
        }
    };
    let text = String::from_utf8(bytes.0.to_vec())
        .map_err(|error| damaged("UTF-8", error.utf8_error()))?;
    let found = text.len();
    let text = SegmentText::from_parts(text, kept)
        .ok_or_else(|| damaged("runs that fit the text", "others"))?;
    if text.is_whole() && found != whole as usize {
        return Err(damaged(format_args!("{whole} bytes of text"), found));
    }
    let is_cut = |chunk: &ChunkRow| {
        let end = text.get(chunk.text_end..chunk.text_end);
        text.is_whole() && end.is_none()
    };
    if tables.chunks.iter().any(is_cut) {
        return Err(damaged("chunks that end between characters", "one that does not"));
    }
    Ok(text)
}

/// The payload of a segment's tables.
///
/// # Errors
/// [`ErrorKind::Limit`] where members of a chunk nest so deep that they could not be read back.
pub(super) fn pack_tables(tables: &Tables) -> Result<Vec<u8>> {
    let Tables { frames, chunks, words, kinds, sets, set_ends, identities, rare, .. } = tables;
    let rare_chunks = rare.all_of_chunks();
    let (order, numbers) = order_of_appearance(tables);
    let number = |facet: u32| numbers.get(facet as usize).copied().unwrap_or_default();
    let mut out = Vec::with_capacity(frames.len() * 36 + chunks.len() * 16);
    out.put_u64(tables.first_sequence);
    for count in [
        frames.len(),
        chunks.len(),
        order.len(),
        words.len(),
        kinds.len(),
        set_ends.len(),
        sets.len(),
        identities.len(),
        rare.tokens.len(),
        rare.exact.len(),
        rare_chunks.len(),
        rare.frames.len(),
    ] {
        out.put_u32(count as u32);
    }
    out.put_rise_u32(frames.iter().map(|frame| frame.sequence));
    out.put_rise_u32(frames.iter().map(|frame| frame.text_end));
    out.put_rise_u32(frames.iter().map(|frame| frame.chunk_end));
    out.put_rise_u64(frames.iter().map(|frame| frame.tokens_end));
    frames.iter().for_each(|frame| out.extend(frame.captured_at.to_le_bytes()));
    frames.iter().for_each(|frame| out.put_u32(frame.exact));
    out.put_rise_u32(chunks.iter().map(|chunk| chunk.text_end));
    chunks.iter().for_each(|chunk| out.put_u32(chunk.tokens));
    for chunk in chunks {
        let is_one = (FIRST..SET).contains(&chunk.facets);
        out.put_u32(if is_one { FIRST + number(chunk.facets - FIRST) } else { chunk.facets });
    }
    chunks.iter().for_each(|chunk| out.put_u32(chunk.kind));
    put_names(&mut out, order.iter().map(|facet| tables.facets.get(*facet)));
    put_names(&mut out, words.iter());
    for kind in kinds {
        out.put_u32(kind.chunk_type);
        out.put_u32(kind.part_id);
        out.put_u32(kind.part_name);
        out.push(match kind.role {
            None => 0,
            Some(Role::User) => 1,
            Some(Role::Assistant) => 2,
            Some(Role::System) => 3,
        });
        out.push(kind.part as u8);
    }
    out.put_rise_u32(set_ends.iter().copied());
    sets.iter().for_each(|facet| out.put_u32(number(*facet)));
    for (frame, identity) in identities {
        out.put_u32(*frame);
        put_json(&mut out, identity.as_ref().map(|identity| identity.to_json()))?;
    }
    for (row, count) in rare.tokens.iter().chain(&rare.exact) {
        out.put_u32(*row);
        out.put_u64(*count);
    }
    for (chunk, rare) in rare_chunks {
        out.put_u32(chunk);
        put_json(&mut out, Some(rare.onto(RenderedChunk::default()).to_json()))?;
    }
    for (frame, extra) in &rare.frames {
        out.put_u32(*frame);
        put_json(&mut out, Some(Value::Object(extra.clone())))?;
    }
    Ok(pack(&out))
}

/// The facets in the order in which they first appear, and the number that gives each.
fn order_of_appearance(tables: &Tables) -> (Vec<u32>, Vec<u32>) {
    let mut order = Vec::with_capacity(tables.facets.len());
    let mut numbers = vec![u32::MAX; tables.facets.len()];
    for chunk in &tables.chunks {
        for facet in tables.facets_of(chunk.facets).iter() {
            if let Some(number) = numbers.get_mut(*facet as usize).filter(|at| **at == u32::MAX) {
                *number = order.len() as u32;
                order.push(*facet);
            }
        }
    }
    (order, numbers)
}

fn put_names<'n>(out: &mut Vec<u8>, names: impl Iterator<Item = &'n str> + Clone) {
    names.clone().for_each(|name| out.put_u32(name.len() as u32));
    names.for_each(|name| out.extend(name.as_bytes()));
}

fn put_json(out: &mut Vec<u8>, value: Option<Value>) -> Result<()> {
    let text = value.map(|value| value.to_string()).unwrap_or_default();
    if !text.is_empty() {
        // What a caller built may nest deeper than is read.
        json::read(text.as_bytes())?;
    }
    out.put_sized(text.as_bytes())
}

/// The tables of a segment that holds so much.
pub(super) fn unpack_tables(payload: &[u8], own: Totals) -> Result<SealedTables> {
    let rows = own.frames.saturating_add(own.chunks).saturating_mul(MOST_ROW_BYTES);
    let most = rows.saturating_add(MOST_NAME_BYTES).saturating_add(payload.len() as u64);
    let bytes = unpack(payload, most)?;
    let mut bytes = Bytes(&bytes);
    let mut tables = Tables { first_sequence: bytes.u64()?, ..Tables::default() };
    let mut counts = [0; 12];
    for count in &mut counts {
        *count = bytes.u32()?;
    }
    let [frames, chunks, facets, words, kinds, lists, listed, makers, tokens, exact, rare, extra] =
        counts;
    tables.frames = Arc::new(take_frames(&mut bytes, frames)?);
    tables.chunks = take_chunks(&mut bytes, chunks)?;
    tables.facets = take_names(&mut bytes, facets)?;
    tables.words = take_names(&mut bytes, words)?;
    for _ in 0..kinds {
        tables.kinds.push(take_kind(&mut bytes)?);
    }
    tables.set_ends = bytes.rise_u32(lists)?;
    tables.sets = bytes.column_u32(listed)?.collect();
    for _ in 0..makers {
        let (frame, json) = (bytes.u32()?, bytes.sized()?);
        let identity = match json {
            [] => None,
            json => Some(Arc::new(SnapshotIdentity::from_json(json::read(json)?)?)),
        };
        tables.identities.push((frame, identity));
    }
    let mut wide = |count: u32| {
        (0..count).map(|_| Ok((bytes.u32()?, bytes.u64()?))).collect::<Result<Vec<_>>>()
    };
    let (tokens, exact) = (wide(tokens)?, wide(exact)?);
    tables.rare = RareRows { tokens, exact, ..RareRows::default() };
    let mut last_rare = None;
    for _ in 0..rare {
        let (chunk, json) = (bytes.u32()?, bytes.sized()?);
        let stored = RenderedChunk::from_json(json::read(json)?)?.into_stored(TextRange::default());
        if last_rare.replace(chunk).is_some_and(|last| last >= chunk) || chunk >= chunks {
            return Err(damaged("rare chunks in order", "others"));
        }
        stored.rare.iter().for_each(|rare| tables.rare.push_chunk(chunk, rare));
    }
    for _ in 0..extra {
        let (frame, json) = (bytes.u32()?, bytes.sized()?);
        let Value::Object(object) = json::read(json)? else {
            return Err(damaged("an object", "another value"));
        };
        tables.rare.frames.push((frame, Object::clone(&object)));
    }
    bytes.end()?;
    tables.check()?;
    Ok(SealedTables::new(tables))
}

fn take_frames(bytes: &mut Bytes<'_>, rows: u32) -> Result<Vec<FrameRow>> {
    let (sequences, texts, chunks) =
        (bytes.rise_u32(rows)?, bytes.rise_u32(rows)?, bytes.rise_u32(rows)?);
    let tokens = bytes.rise_u64(rows)?;
    let captured = bytes.column_u64(rows)?;
    let exact = bytes.column_u32(rows)?;
    let ends = sequences.into_iter().zip(texts).zip(chunks).zip(tokens);
    let row = |((((sequence, text_end), chunk_end), tokens_end), (captured_at, exact)): (
        _,
        (u64, u32),
    )| {
        FrameRow {
            tokens_end,
            captured_at: captured_at.cast_signed(),
            text_end,
            chunk_end,
            exact,
            sequence,
        }
    };
    Ok(ends.zip(captured.zip(exact)).map(row).collect())
}

fn take_chunks(bytes: &mut Bytes<'_>, rows: u32) -> Result<Vec<ChunkRow>> {
    let texts = bytes.rise_u32(rows)?;
    let (tokens, facets, kinds) =
        (bytes.column_u32(rows)?, bytes.column_u32(rows)?, bytes.column_u32(rows)?);
    let rows = texts.into_iter().zip(tokens).zip(facets.zip(kinds));
    let row = |((text_end, tokens), (facets, kind))| ChunkRow { text_end, tokens, facets, kind };
    Ok(rows.map(row).collect())
}

fn take_names(bytes: &mut Bytes<'_>, count: u32) -> Result<Names> {
    let lengths: Vec<u32> = bytes.column_u32(count)?.collect();
    let mut names = Names::default();
    for length in lengths {
        let name = bytes.take(length as usize)?;
        let name = std::str::from_utf8(name).map_err(|error| damaged("UTF-8", error))?;
        names.push(name);
    }
    names.shrink_to_fit();
    Ok(names)
}

fn take_kind(bytes: &mut Bytes<'_>) -> Result<Kind> {
    let (chunk_type, part_id, part_name) = (bytes.u32()?, bytes.u32()?, bytes.u32()?);
    let role = match bytes.u8()? {
        0 => None,
        1 => Some(Role::User),
        2 => Some(Role::Assistant),
        3 => Some(Role::System),
        other => return Err(damaged("a role", other)),
    };
    let part = bytes.u8()?;
    let part = PartKind::from_number(part).ok_or_else(|| damaged("a part", part))?;
    Ok(Kind { chunk_type, part_id, part_name, role, part })
}
