//! Inputs of the benches: the recorded transcripts where they are there, else generated ones.

#![allow(dead_code)]

pub(crate) mod frames;
pub(crate) mod loops;

use std::path::{Path, PathBuf};

use afterimage::{
    id::FacetType,
    json::{Object, Value},
    tokens::{CountedText, TokenCounter},
    transcript::Transcript,
    veil::{Facet, FacetChange, FacetOp, Frame, Source, Veil, VisibleFacets},
};

/// One session: its frames, each with what it shows.
pub(crate) struct Session {
    pub(crate) frames: Vec<(Frame, VisibleFacets)>,
}

/// The recorded sessions, or generated ones where no recordings are there; with their name.
pub(crate) fn corpus() -> (String, Vec<Session>) {
    let recorded: Vec<Session> = recordings().iter().flat_map(|path| sessions_of(path)).collect();
    if recorded.is_empty() {
        return ("generated".to_owned(), vec![generated(2_000)]);
    }
    let name = chosen().map_or_else(|| "recorded".to_owned(), |folder| folder.replace('/', "-"));
    (name, recorded)
}

/// The folder of recordings to use instead of all, such as `A-openai-chat/tau-bench`.
fn chosen() -> Option<String> {
    std::env::var("AFTERIMAGE_BENCH_RECORDINGS").ok()
}

/// The recorded transcripts.
pub(crate) fn recordings() -> Vec<PathBuf> {
    let all = || {
        ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"]
            .map(str::to_owned)
            .into()
    };
    let groups: Vec<String> = chosen().map_or_else(all, |folder| vec![folder]);
    let root = afterimage_testkit::data::beside("data");
    let mut files = Vec::new();
    for group in groups {
        walk(&root.join(group), &mut files);
    }
    files.sort();
    files
}

/// The texts of the facets of tau-bench, or generated ones where no recordings are there: so many
/// that they come again and again, and with what they are of.
pub(crate) fn tau_bench(count: usize) -> (&'static str, Vec<String>) {
    let mut files = Vec::new();
    walk(&afterimage_testkit::data::beside("data/A-openai-chat/tau-bench"), &mut files);
    let recorded: Vec<Session> = files.iter().flat_map(|path| sessions_of(path)).collect();
    let (name, sessions) = if recorded.is_empty() {
        ("generated", vec![generated(2_000)])
    } else {
        ("tau-bench", recorded)
    };
    let frames = sessions.into_iter().flat_map(|session| session.frames);
    let texts: Vec<String> = frames
        .flat_map(|(frame, _)| frame.ops)
        .filter_map(|op| match op.change {
            FacetChange::Add(facet) if !facet.content.is_empty() => Some(facet.content.clone()),
            _ => None,
        })
        .collect();
    (name, texts.iter().cycle().take(count).cloned().collect())
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

fn sessions_of(path: &Path) -> Vec<Session> {
    let mut sessions: Vec<(std::sync::Arc<str>, Veil, Session)> = Vec::new();
    for record in Transcript::open(path).into_iter().flatten() {
        let record = record.unwrap();
        let index =
            sessions.iter().position(|(name, ..)| *name == record.session).unwrap_or_else(|| {
                sessions.push((
                    record.session.clone(),
                    Veil::default(),
                    Session { frames: Vec::new() },
                ));
                sessions.len() - 1
            });
        let (_, veil, session) = &mut sessions[index];
        let shown = veil.apply(&record.frame).unwrap();
        session.frames.push((record.frame, shown));
    }
    sessions.into_iter().map(|(_, _, session)| session).collect()
}

/// A session of `turns` turns: a request, a thought, two calls and their results.
pub(crate) fn generated(turns: u64) -> Session {
    let mut veil = Veil::default();
    let mut frames = Vec::new();
    let prose = "The sensor reads 4.2 GHz near (11, 7); compare it with the log of 2026-03-01. ";
    for turn in 0..turns {
        let n = turn as usize;
        let mut parameters = Object::new();
        parameters.insert("path".to_owned(), format!("logs/sector-{turn}.csv").into());
        parameters.insert("limit".to_owned(), Value::from(turn * 7));
        let call = |k| {
            Facet::tool_call(
                format!("call-{turn}-{k}"),
                Some("c"),
                "read_log",
                parameters.clone().into(),
            )
        };
        let result = |k: usize| {
            let text = "id,value,unit\n17,4.2,GHz\n".repeat(4 + (n * 7 + k * 13) % 60);
            Facet::tool_result(format!("result-{turn}-{k}"), Some("c"), Some("read_log"), text)
        };
        let thought =
            Facet::new(format!("thought-{turn}"), FacetType::THOUGHT, prose.repeat(1 + n % 5));
        let ask = Facet::new(format!("ask-{turn}"), FacetType::EVENT, prose.repeat(1 + n % 3));
        let ops = [
            (Source::User, vec![ask]),
            (Source::Agent, vec![thought, call(0), call(1)]),
            (Source::Environment, vec![result(0), result(1)]),
        ];
        for (source, facets) in ops {
            let mut frame = Frame::new(frames.len() as u64, source);
            frame.ops = facets.into_iter().map(FacetOp::add).collect();
            let shown = veil.apply(&frame).unwrap();
            frames.push((frame, shown));
        }
    }
    Session { frames }
}

/// The generated session as frames by line.
pub(crate) fn generated_lines(turns: u64) -> Vec<u8> {
    let mut lines = String::new();
    for (frame, _) in generated(turns).frames {
        lines.push_str(&frame.to_json().to_string());
        lines.push('\n');
    }
    lines.into_bytes()
}

/// A counter that costs nothing: what remains is the price of rendering and capture.
pub(crate) struct KnownCounts;

impl TokenCounter for KnownCounts {
    fn id(&self) -> &'static str {
        "known"
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn count(&self, text: &str) -> usize {
        text.len() / 4
    }

    fn count_joined(&self, parts: &[CountedText<'_>]) -> usize {
        parts.iter().map(|part| part.tokens).sum()
    }
}
