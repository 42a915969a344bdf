//! Frames of one facet each, the capture of them, and the plain loops that it is measured beside.
//!
//! A loop formats each text into one string, looks for `<`, counts it by four UTF-16 units a token
//! in rows, as [`Chars4`] does, and keeps the id of its facet with its range. `peers/` has them too.

use std::sync::Arc;

use afterimage::{
    hud::Hud,
    id::{FacetId, FacetType, Millis},
    tokens::{Chars4, TokenCounter},
    veil::{Facet, FacetChange, FacetOp, Frame, History, Source},
};

/// A text of all, and of each facet its id, its range and its tokens.
pub(crate) type Kept = (String, Vec<(FacetId, usize, usize, usize)>);

/// A frame for each text: of the user, of the agent, of the environment, and so on.
pub(crate) fn frames(texts: &[String]) -> Vec<Frame> {
    (0..)
        .zip(texts)
        .map(|(sequence, text)| {
            let (source, facet_type) = match sequence % 3 {
                0 => (Source::User, FacetType::EVENT),
                1 => (Source::Agent, FacetType::SPEECH),
                _ => (Source::Environment, FacetType::EVENT),
            };
            let facet = Facet::new(format!("facet-{sequence}"), facet_type, text.as_str());
            Frame::new(sequence, source).with(FacetOp::add(facet))
        })
        .collect()
}

/// The ids of these frames' facets.
pub(crate) fn ids(texts: &[String]) -> Vec<FacetId> {
    (0..texts.len()).map(|at| FacetId::from(format!("facet-{at}"))).collect()
}

fn format(all: &mut String, text: &str, is_agent: bool) {
    all.push_str(if is_agent { "<my_turn>\n\n" } else { "" });
    match memchr::memchr(b'<', text.as_bytes()) {
        None => all.push_str(text),
        Some(_) => all.push_str(&text.replace('<', "&lt;")),
    }
    all.push_str(if is_agent { "\n\n</my_turn>" } else { "" });
}

#[inline(never)]
pub(crate) fn plain_loop(texts: &[String], ids: &[FacetId]) -> Kept {
    let (mut all, mut kept) = (String::new(), Vec::new());
    for ((index, text), id) in texts.iter().enumerate().zip(ids) {
        let start = all.len();
        format(&mut all, text, index % 3 == 1);
        let tokens = Chars4.count(&all[start..]);
        kept.push((id.clone(), start, all.len(), tokens));
    }
    (all, kept)
}

/// As [`plain_loop`], over the frames that a capture gets, which it drops like a capture does.
#[inline(never)]
pub(crate) fn plain_loop_over_frames(frames: Vec<Frame>) -> Kept {
    let (mut all, mut kept) = (String::new(), Vec::new());
    for frame in frames {
        let is_agent = frame.source == Source::Agent;
        for op in &frame.ops {
            let FacetChange::Add(facet) = &op.change else { continue };
            let start = all.len();
            format(&mut all, &facet.content, is_agent);
            let tokens = Chars4.count(&all[start..]);
            kept.push((facet.id.clone(), start, all.len(), tokens));
        }
    }
    (all, kept)
}

#[inline(never)]
pub(crate) fn captured(frames: Vec<Frame>) -> History {
    let hud = Hud::new(Arc::new(Chars4));
    let mut history = History::new();
    for frame in frames {
        hud.capture(&mut history, frame, Millis::new(0)).expect("the frame is sound");
    }
    history
}
