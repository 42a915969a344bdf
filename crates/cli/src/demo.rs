//! `afterimage demo`: the main job on a session that the project wrote itself.

pub(crate) mod args;

use std::{io::Write, path::Path, sync::Arc};

use afterimage::{
    id::{FrameSeq, Role},
    json::Value,
    session::{ViewedFrame, Viewer},
    snapshot::ChunkRef,
    transcript::{Record, Transcript},
};

use crate::{
    answer::answer,
    args::Format,
    failure::{Failure, Outcome},
    frames,
    hit::{Hit, HitAnswer},
    labels::{FrameLabels, Labels},
    lens::{Counting, Lens},
    moment::moment,
    output::Output,
    phrase::occurrences,
    style,
    text::counted,
    view,
};

/// The session, and the link to it that is easier to find. The package has the file in itself.
const SESSION: &str = include_str!("demo/harbour.jsonl");
const SESSION_PATH: &str = "examples/sessions/harbour.jsonl";
/// The frame that is shown in full.
const SHOWN: u64 = 7;
/// The line whose writer is asked for.
const QUESTION: &str = "1  Morning Star       approved, no pilot needed";

pub(crate) fn run(args: &args::Demo) -> Outcome {
    let lens = Lens::new(&args.rendering, Counting::Always)?;
    let transcript = Transcript::new(SESSION.as_bytes())?;
    let mut viewer = Viewer::new(&lens.hud, transcript.format());
    let records = transcript.collect::<afterimage::Result<Vec<Record>>>()?;
    let frames: Vec<ViewedFrame> = records
        .into_iter()
        .map(|record| {
            let now = moment(&record.frame);
            viewer.view(record, None, now)
        })
        .collect::<afterimage::Result<_>>()?;
    let shown = frames.iter().find(|seen| seen.frame.sequence.get() == SHOWN);
    let shown = shown.ok_or_else(|| Failure::new("the sample session has no such frame"))?;
    let mut labels = Labels::default();
    let labels: Vec<_> = frames.iter().map(|seen| labels.of_seen(seen)).collect();
    let mut hits = Vec::new();
    for (seen, labels) in frames.iter().zip(&labels) {
        let of = (&seen.session, Some(seen.frame.sequence.get()), seen.message);
        for range in occurrences(seen.snapshot.text(), QUESTION) {
            let tokens = |chunk: ChunkRef<'_>| lens.tokens(&seen.snapshot, chunk);
            let hit = Hit::at(of, &seen.snapshot, range, tokens);
            hits.extend(hit.map(|hit| hit.labelled(labels)));
        }
    }
    let mut out = Output::new(args.coloring.color);
    if args.json {
        json(&lens, &frames, shown, &hits, &mut out)?;
    } else {
        page(args, &lens, (&frames, &labels), shown, &hits, &mut out)?;
    }
    Ok(out.flush()?)
}

fn page(
    args: &args::Demo,
    lens: &Lens,
    (frames, labels): (&[ViewedFrame], &[FrameLabels]),
    shown: &ViewedFrame,
    hits: &[Hit<'_>],
    out: &mut Output,
) -> Outcome {
    let (bold, dim) = (out.paint.style(style::HEADING), out.paint.style(style::DIM));
    writeln!(out, "{bold}afterimage{bold:#} keeps what an LLM agent actually saw.")?;
    writeln!(out, "{dim}A foggy night at Port Lowmarsh, as its harbour agent saw it.{dim:#}\n")?;

    let tokens = frames.iter().map(|seen| lens.total_tokens(&seen.snapshot));
    let tokens = tokens.fold(0, u64::saturating_add);
    let after = format!("{}, {}", counted(frames.len() as u64, "frame"), counted(tokens, "token"));
    view::rule(out, "1  The session, frame by frame", style::HEADING, &after)?;
    let table = frames::frame_table(out);
    table.head(out)?;
    for row in frames.iter().zip(labels) {
        frames::row(&table, lens, row, out)?;
    }

    let after = format!(
        "{}, {}",
        counted(shown.snapshot.len() as u64, "chunk"),
        counted(lens.total_tokens(&shown.snapshot), "token")
    );
    writeln!(out)?;
    view::rule(
        out,
        &format!("2  Frame {SHOWN} as the model read it, and its facets"),
        style::HEADING,
        &after,
    )?;
    view::body(out, &shown.snapshot)?;

    writeln!(out)?;
    view::rule(out, "3  Which facet wrote this line?", style::HEADING, "")?;
    let hit_style = out.paint.style(style::HIT);
    writeln!(out, " {hit_style}{QUESTION}{hit_style:#}\n")?;
    let table = Hit::table(out);
    table.head(out)?;
    for hit in hits {
        hit.print(&table, out)?;
    }
    writeln!(
        out,
        "\n It reads like the berth board, but {bold}papers{bold:#} wrote it: the result of a tool call."
    )?;
    if matches!(args.rendering.format, None | Some(Format::Xml)) {
        writeln!(out, " Its tags were forged, so they reached the model as plain text.")?;
    }

    writeln!(out)?;
    view::rule(out, "4  Try next", style::HEADING, "")?;
    let program = program();
    let session = if Path::new(SESSION_PATH).exists() { SESSION_PATH } else { "session.jsonl" };
    for (command, why) in [
        (format!("stats {session}"), "what it holds and what it costs"),
        (format!("render {session}"), "all that the model read"),
        (format!("trace {session} --text Bernard"), "who said that, and where"),
    ] {
        writeln!(out, " {bold}{program} {command}{bold:#}\n     {dim}{why}{dim:#}")?;
    }
    writeln!(out, "\n Transcripts of your own tools are read the same way: only name the file.")?;
    Ok(())
}

/// How the program was started.
fn program() -> &'static str {
    if std::env::var_os("CARGO").is_some() { "cargo run --release --" } else { "afterimage" }
}

fn json(
    lens: &Lens,
    frames: &[ViewedFrame],
    shown: &ViewedFrame,
    hits: &[Hit<'_>],
    out: &mut Output,
) -> Outcome {
    let row = |seen: &'_ ViewedFrame| DemoFrame {
        session: Arc::clone(&seen.session),
        sequence: seen.frame.sequence,
        source: seen.frame.source.as_str().to_owned(),
        role: seen.snapshot.chunks().find_map(|chunk| chunk.role()).map(Role::as_str),
        chunks: seen.snapshot.len(),
        tokens: lens.total_tokens(&seen.snapshot),
    };
    out.answer(&DemoAnswer {
        frames: frames.iter().map(row).collect(),
        shown: ShownFrame {
            session: Arc::clone(&shown.session),
            sequence: shown.frame.sequence,
            snapshot: shown.snapshot.to_json(),
        },
        question: QUESTION,
        hits: hits.iter().map(|hit| hit.answer(None, None)).collect(),
    })
}

answer! {
    /// What the demo shows.
    pub(crate) struct DemoAnswer<'h> {
        /// the frames of the sample
        frames: Vec<DemoFrame>,
        /// the frame that is shown in full
        shown: ShownFrame,
        /// the text whose writer is asked for
        question: &'static str,
        /// where it is; without `tokenizer`, `counts` and `error`
        hits: Vec<HitAnswer<'h>>,
    }

    /// A frame of the sample.
    pub(crate) struct DemoFrame {
        /// its session
        session: Arc<str>,
        /// its position in the history
        sequence: FrameSeq,
        /// its source, as in a frame, with its default
        source: String,
        /// the role of its first chunk that has one
        role: Option<&'static str>,
        /// how many chunks it has
        chunks: usize,
        /// the sum of their tokens
        tokens: u64,
    }

    /// The frame that is shown in full.
    pub(crate) struct ShownFrame {
        /// its session
        session: Arc<str>,
        /// its position in the history
        sequence: FrameSeq,
        /// as in `render --as snapshots`
        snapshot: Value,
    }
}
