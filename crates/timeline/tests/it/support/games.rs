//! Recorded games and traces as states, one after the other.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::{io::Read, path::Path};

use afterimage_json as json;
use afterimage_json::Value;
use afterimage_timeline::Data;

/// States, one after the other, made anew each time that they are asked for: those of a long trace
/// do not fit into memory together.
pub(crate) enum ForeignTimeline {
    Game(Vec<Data>),
    Trace { start: Vec<char>, transactions: Vec<Value>, most: usize },
}

/// The states of a recorded game: each turn of a sandbox replay, each phase of a diplomacy game.
pub(crate) fn game(path: &Path, member: &str) -> ForeignTimeline {
    let game = json::read(&std::fs::read(path).unwrap()).unwrap();
    let states = game.get(member).unwrap().as_array().unwrap().iter();
    ForeignTimeline::Game(states.cloned().map(Data::from).collect())
}

/// The lines of a text before an editing trace, and after each of its transactions; after so many
/// of them at most.
pub(crate) fn trace(path: &Path, most: usize) -> ForeignTimeline {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_end(&mut text)
        .unwrap();
    let trace = json::read(&text).unwrap();
    let start = trace.str_at("startContent").unwrap().chars().collect();
    let transactions = trace.get("txns").unwrap().as_array().unwrap().to_vec();
    let recorded = ForeignTimeline::Trace { start, transactions, most };
    if let ForeignTimeline::Trace { start, transactions, .. } = &recorded {
        let mut content = start.clone();
        transactions.iter().for_each(|transaction| edit(&mut content, transaction));
        assert_eq!(content.iter().collect::<String>(), trace.str_at("endContent").unwrap());
    }
    recorded
}

impl ForeignTimeline {
    pub(crate) fn states(&self) -> Box<dyn Iterator<Item = Data> + '_> {
        match self {
            Self::Game(states) => Box::new(states.iter().cloned()),
            Self::Trace { start, transactions, most } => {
                let mut content = start.clone();
                let before = lines(&content);
                let after = transactions.iter().take(*most).map(move |transaction| {
                    edit(&mut content, transaction);
                    lines(&content)
                });
                Box::new(std::iter::once(before).chain(after))
            }
        }
    }
}

fn edit(content: &mut Vec<char>, transaction: &Value) {
    let number = |patch: &Value, at: usize| {
        usize::try_from(patch.at(at).unwrap().as_u64().unwrap()).unwrap()
    };
    for patch in transaction.get("patches").unwrap().as_array().unwrap() {
        let (position, gone) = (number(patch, 0), number(patch, 1));
        let come = patch.at(2).unwrap().as_str().unwrap().chars();
        content.splice(position..position + gone, come);
    }
}

fn lines(content: &[char]) -> Data {
    let lines = content
        .split(|c| *c == '\n')
        .map(|line| Data::from(line.iter().collect::<String>().as_str()));
    Data::from_iter([("lines", lines.collect::<Data>())])
}
