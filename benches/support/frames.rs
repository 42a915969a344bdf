//! Snapshots of any number of frames, and the plain list that the archive is compared with.
//!
//! The corpus is captured once and then repeated: frame `n` is frame `n % len` of the corpus with
//! ids of facets and calls of its own round, so that they are as many and as long as in one long
//! history. The text
//! of a frame is that of the recordings (about a kilobyte on average, where they are there).
//! Snapshots are made when they are asked for, so a million frames are held once, by whom they are
//! measured in.
//!
//! Every 100th frame also names the facet `every-100`, every 1,000th `every-1000`, and every
//! 10,000th `every-10000`.
//!
//! The sizes are 10,000, 100,000 and 1,000,000 frames. `AFTERIMAGE_BENCH_FRAMES=10000` leaves out
//! what is larger: a million frames take some seconds to set up, and with their list, some
//! gigabytes of memory (up to sixteen where they are pushed).
//! `AFTERIMAGE_BENCH_RECORDINGS=A-openai-chat/tau-bench` leaves out all other recordings.

use std::sync::Arc;

use afterimage::{
    hud::Hud,
    id::{FacetId, FrameSeq, Millis, Role},
    snapshot::{
        ChunkRef, FrameSnapshot, FrameSnapshotBuilder, Part, RenderedChunk, SnapshotArchive,
    },
    veil::History,
};

use super::{KnownCounts, Session, corpus};

/// The sizes to measure at.
pub(crate) fn sizes() -> Vec<u64> {
    let most = std::env::var("AFTERIMAGE_BENCH_FRAMES")
        .map_or(u64::MAX, |most| most.parse().expect("AFTERIMAGE_BENCH_FRAMES is a number"));
    [10_000, 100_000, 1_000_000].into_iter().filter(|frames| *frames <= most).collect()
}

/// Frames that never end.
pub(crate) struct Frames {
    /// Where the text is from.
    pub(crate) name: String,
    corpus: Vec<Vec<RenderedChunk>>,
}

impl Frames {
    pub(crate) fn load() -> Self {
        let (name, sessions) = corpus();
        let histories = sessions.iter().map(captured);
        let corpus = histories.flat_map(|history| {
            snapshots(&history).map(|snapshot| chunks(&snapshot)).collect::<Vec<_>>()
        });
        Self { name, corpus: corpus.collect() }
    }

    /// The snapshot of frame `n`.
    pub(crate) fn snapshot(&self, n: u64) -> FrameSnapshot {
        let count = self.corpus.len() as u64;
        let (chunks, round) = (&self.corpus[(n % count) as usize], n / count);
        let mut builder = FrameSnapshotBuilder::new(&KnownCounts);
        builder.reserve(chunks.len(), chunks.iter().map(|chunk| chunk.content.len()).sum());
        // As in a capture, the chunks of one facet share its id.
        let mut last: Option<(FacetId, FacetId)> = None;
        for (index, chunk) in chunks.iter().enumerate() {
            let mut chunk = chunk.clone();
            for id in chunk.facet_ids.iter_mut().flatten() {
                if last.as_ref().is_none_or(|(of, _)| of != id) {
                    last = Some((id.clone(), format!("{id}~{round}").into()));
                }
                *id = last.as_ref().map_or_else(|| id.clone(), |(_, fresh)| fresh.clone());
            }
            if let Part::Call { id: Some(id), .. } | Part::Result { id: Some(id) } = &mut chunk.part
            {
                *id = format!("{id}~{round}").into();
            }
            if index == 0 {
                for every in
                    [100, 1_000, 10_000].into_iter().filter(|every| n.is_multiple_of(*every))
                {
                    chunk.facet_ids.get_or_insert_default().push(format!("every-{every}").into());
                }
            }
            builder.add_chunk(chunk);
        }
        builder.build(Millis::new(1_763_683_200_000 + n.cast_signed()))
    }

    /// The archive of the first `count` frames.
    pub(crate) fn archive(&self, count: u64) -> SnapshotArchive {
        let mut archive = SnapshotArchive::new();
        (0..count).for_each(|n| archive.push(n, &self.snapshot(n)).unwrap());
        archive
    }

    /// The list of the first `count` frames.
    pub(crate) fn list(&self, count: u64) -> List {
        List((0..count).map(|n| PlainSnapshot::of(n, &self.snapshot(n))).collect())
    }
}

/// The history of a session, captured with counts that cost nothing.
pub(crate) fn captured(session: &Session) -> History {
    let hud = Hud::new(Arc::new(KnownCounts));
    let mut history = History::new();
    for (frame, _) in &session.frames {
        hud.capture(&mut history, frame.clone(), Millis::new(0)).unwrap();
    }
    history
}

/// The snapshots of a history.
pub(crate) fn snapshots(history: &History) -> impl Iterator<Item = Arc<FrameSnapshot>> {
    let frames = history.frames();
    (0..frames.len()).filter_map(move |index| frames.snapshot(index))
}

fn chunks(snapshot: &FrameSnapshot) -> Vec<RenderedChunk> {
    snapshot.chunks().map(ChunkRef::to_owned).collect()
}

/// The specification's frames: a plain list of snapshots, each with its text twice.
#[derive(Default)]
pub(crate) struct List(pub(crate) Vec<PlainSnapshot>);

/// `FrameRenderedSnapshot` of the specification, with the frame's sequence.
pub(crate) struct PlainSnapshot {
    pub(crate) sequence: FrameSeq,
    pub(crate) chunks: Vec<PlainChunk>,
    pub(crate) total_content: String,
    pub(crate) total_tokens: u64,
    pub(crate) captured_at: i64,
    pub(crate) has_content: bool,
}

/// `RenderedChunk` of the specification.
pub(crate) struct PlainChunk {
    pub(crate) content: String,
    pub(crate) tokens: u64,
    pub(crate) facet_ids: Option<Vec<String>>,
    pub(crate) chunk_type: Option<String>,
    pub(crate) role: Option<Role>,
}

impl PlainSnapshot {
    pub(crate) fn of(sequence: u64, snapshot: &FrameSnapshot) -> Self {
        let plain = |chunk: ChunkRef<'_>| {
            let ids = chunk.facet_ids().map(ToString::to_string).collect::<Vec<_>>();
            PlainChunk {
                content: chunk.content().to_owned(),
                tokens: chunk.tokens(),
                facet_ids: (!ids.is_empty()).then_some(ids),
                chunk_type: chunk.chunk_type().map(ToString::to_string),
                role: chunk.role(),
            }
        };
        Self {
            sequence: sequence.into(),
            chunks: snapshot.chunks().map(plain).collect(),
            total_content: snapshot.text().to_owned(),
            total_tokens: snapshot.total_tokens(),
            captured_at: snapshot.captured_at().get(),
            has_content: snapshot.has_content(),
        }
    }
}

impl List {
    fn within(&self, from: u64, to: u64) -> impl Iterator<Item = &PlainSnapshot> {
        let range = FrameSeq::new(from)..=FrameSeq::new(to);
        self.0.iter().filter(move |frame| range.contains(&frame.sequence))
    }

    /// `extractSnapshotRange` of the specification: filters the whole list, and joins the text.
    pub(crate) fn extract_range(&self, from: u64, to: u64) -> (Vec<&PlainChunk>, String, u64) {
        let (mut chunks, mut text, mut tokens) = (Vec::new(), String::new(), 0);
        for frame in self.within(from, to) {
            chunks.extend(&frame.chunks);
            text.push_str(&frame.total_content);
            tokens += frame.total_tokens;
        }
        (chunks, text, tokens)
    }

    /// The tokens and bytes of a range.
    pub(crate) fn measure(&self, from: u64, to: u64) -> (u64, usize) {
        let each =
            self.within(from, to).map(|frame| (frame.total_tokens, frame.total_content.len()));
        each.fold((0, 0), |sum, frame| (sum.0 + frame.0, sum.1 + frame.1))
    }

    /// `findChunksByFacet` of the specification over all frames.
    pub(crate) fn find_chunks(&self, facet: &str) -> Vec<&PlainChunk> {
        let has = |chunk: &&PlainChunk| chunk.facet_ids.iter().flatten().any(|id| id == facet);
        self.0.iter().flat_map(|frame| &frame.chunks).filter(has).collect()
    }
}

/// Numbers below `most` in no order, the same in each run.
pub(crate) struct Places {
    state: u64,
    most: u64,
}

impl Places {
    pub(crate) fn below(most: u64) -> Self {
        Self { state: 0x9E37_79B9_7F4A_7C15, most }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % self.most
    }
}
