//! How much a history, its archive and its blocks hold, counted by the allocator.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::{mem::size_of, path::PathBuf, sync::Arc};

use afterimage::{
    hud::{Hud, NativeFormat},
    id::Millis,
    snapshot::SnapshotArchive,
    tokens::Chars4,
    transcript::Transcript,
    veil::{Facet, FacetChange, Frame, History},
};
use afterimage_testkit::data;
use allocation_counter::measure;

const NOW: Millis = Millis::new(0);

fn hud() -> Hud {
    Hud::builder(Arc::new(Chars4)).format(Arc::new(NativeFormat)).build()
}

#[test]
fn explore() {
    println!("frame {} facet {}", size_of::<Frame>(), size_of::<Facet>());
    for group in ["A-openai-chat", "B-anthropic", "C-codex-responses", "D-swe-agent"] {
        let Some(folder) = data::recordings(group) else { continue };
        let mut files: Vec<PathBuf> = data::files_under(&folder);
        files.sort();
        let (mut all_text, mut all_held, mut all_frames) = (0, 0, 0);
        for path in files {
            let hud = hud();
            let mut text = 0;
            let mut frames = 0;
            let mut keep = None;
            let info = measure(|| {
                let mut sessions: Vec<(Arc<str>, History)> = Vec::new();
                for record in Transcript::open(&path).unwrap() {
                    let record = record.unwrap();
                    let at = sessions.iter().position(|(name, _)| *name == record.session);
                    let at = at.unwrap_or_else(|| {
                        sessions.push((record.session.clone(), History::new()));
                        sessions.len() - 1
                    });
                    let frame = hud.capture(&mut sessions[at].1, record.frame, NOW).unwrap();
                    text += frame.rendered_snapshot.as_ref().unwrap().text().len();
                    frames += 1;
                }
                keep = Some(sessions);
            });
            let archive = measure(|| {
                for (_, history) in keep.as_ref().unwrap() {
                    let mut archive = SnapshotArchive::new();
                    for frame in history.frames() {
                        archive
                            .push(frame.sequence, frame.rendered_snapshot.as_ref().unwrap())
                            .unwrap();
                    }
                    archive.shrink_to_fit();
                    std::mem::forget(archive);
                }
            });
            let mut facets = 0;
            let mut content = 0;
            let mut origin = 0;
            let mut state = 0;
            let mut events = 0;
            let mut chunks = 0;
            fn walk(facet: &Facet, out: &mut (usize, usize, usize, usize)) {
                out.0 += 1;
                out.1 += facet.content.len();
                out.2 += facet.attributes.values().map(|v| v.to_string().len()).sum::<usize>();
                out.3 += facet.state.as_ref().map_or(0, |v| v.to_string().len());
                facet.children.iter().for_each(|c| walk(c, out));
            }
            for (_, history) in keep.as_ref().unwrap() {
                for frame in history.frames() {
                    chunks += frame.rendered_snapshot.as_ref().unwrap().len();
                    events += frame.events.iter().map(|v| v.to_string().len()).sum::<usize>();
                    for op in &frame.ops {
                        if let FacetChange::Add(f) = &op.change {
                            let mut out = (0, 0, 0, 0);
                            walk(f, &mut out);
                            facets += out.0;
                            content += out.1;
                            origin += out.2;
                            state += out.3;
                        }
                    }
                }
            }
            if text > 100_000 {
                println!(
                    "{:<60} frames {frames} facets {facets} chunks {chunks} text {text} ({} a frame) content {content} origin {origin} state {state} events {events} history {:.2} archive {:.2}",
                    path.file_name().unwrap().to_string_lossy(),
                    text / frames.max(1),
                    info.bytes_current as f64 / text as f64,
                    archive.bytes_current as f64 / text as f64
                );
            }
            all_text += text;
            all_held += info.bytes_current;
            all_frames += frames;
        }
        println!(
            "{group}: frames {all_frames} text {all_text} history {:.2}",
            all_held as f64 / all_text as f64
        );
    }
}
