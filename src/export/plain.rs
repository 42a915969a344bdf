//! A context as one text.

use super::{
    ExportOptions, ExportedRequest, Form,
    ids::IdRules,
    owned::{OwnedJson, OwnedText},
    pairing::{self, PairRules},
    report::ExportReport,
    turns::{Item, Kind, Turn, Voice},
};
use crate::{hud::Owner, veil::Pairs};

const RULES: PairRules = PairRules {
    ids: IdRules { longest: usize::MAX, plain: false, unique: false },
    inline: |_, _| false,
};

pub(super) fn write<'a>(
    turns: Vec<Turn<'a>>,
    pairs: &Pairs,
    options: &'a ExportOptions,
) -> ExportedRequest {
    let mut report = ExportReport::default();
    let paired = pairing::pair(turns, pairs, &RULES, options, &mut report);
    let mut text = OwnedText::default();
    let (label, separator) = (Owner::Framing("label"), Owner::Framing("separator"));
    for turn in &paired.turns {
        if !text.as_str().is_empty() {
            text.push("\n\n", &separator);
        }
        let speaker = match turn.voice {
            Voice::System => "system:",
            Voice::User => "user:",
            Voice::Agent => "assistant:",
            Voice::Tool => "result:",
        };
        text.push(speaker, &label);
        for item in &turn.items {
            say(item, &mut text);
        }
    }
    ExportedRequest { form: Form::Plain, root: OwnedJson::Text(text), report }
}

fn say(item: &Item<'_>, text: &mut OwnedText) {
    let label = Owner::Framing("label");
    match item.kind {
        Kind::Call { name, .. } => {
            text.push("\n[call ", &label);
            text.push(name, &item.owner);
            text.push("] ", &label);
        }
        Kind::Reasoning => text.push("\n[reasoning] ", &label),
        _ if item.text.as_str().is_empty() => {}
        _ => text.push("\n", &Owner::Framing("separator")),
    }
    text.append(&item.text);
    for inside in &item.inside {
        say(inside, text);
    }
}
