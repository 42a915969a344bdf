//! o200k and cl100k as Hugging Face's `tokenizers` has them: a vocabulary with the merges that lead
//! to each token.

use std::collections::HashMap;

use splintr::pretrained::{PretrainedVocab, patterns};
use tiktoken_rs::CoreBPE;
use tokenizers::{
    SplitDelimiterBehavior, Tokenizer,
    models::bpe::BPE,
    pre_tokenizers::{
        byte_level::ByteLevel,
        sequence::Sequence,
        split::{Split, SplitPattern},
    },
};

/// The character that stands for a byte: itself where it is printed, else one from 256 on.
fn characters() -> Vec<char> {
    let is_printed = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut others = '\u{100}'..;
    (0..=u8::MAX)
        .map(|byte| if is_printed(&byte) { char::from(byte) } else { others.next().expect("more") })
        .collect()
}

/// The two tokens that a token is merged from last.
fn halves(token: &[u8], ranks: &HashMap<Vec<u8>, u32>) -> Option<(Vec<u8>, Vec<u8>)> {
    let own = ranks.get(token)?;
    let mut parts: Vec<&[u8]> = token.chunks(1).collect();
    while parts.len() > 2 {
        let rank = |at: usize| {
            let joined = [parts[at], parts[at + 1]].concat();
            ranks.get(&joined).filter(|rank| *rank < own).map(|rank| (*rank, at))
        };
        let (_, at) = (0..parts.len() - 1).filter_map(rank).min()?;
        let start: usize = parts[..at].iter().map(|part| part.len()).sum();
        let length = parts[at].len() + parts[at + 1].len();
        parts.splice(at..=at + 1, [&token[start..start + length]]);
    }
    (parts.len() == 2).then(|| (parts[0].to_vec(), parts[1].to_vec()))
}

pub fn o200k() -> Tokenizer {
    tokenizer(tiktoken_rs::o200k_base_singleton(), 199_998, PretrainedVocab::O200kBase)
}

pub fn cl100k() -> Tokenizer {
    tokenizer(tiktoken_rs::cl100k_base_singleton(), 100_256, PretrainedVocab::Cl100kBase)
}

/// The tokenizer of the first `count` tokens that `tiktoken-rs` has: all but the special ones.
fn tokenizer(source: &CoreBPE, count: u32, pattern: PretrainedVocab) -> Tokenizer {
    let token = |rank: u32| source.decode_bytes(&[rank]).expect("a token");
    let tokens: Vec<Vec<u8>> = (0..count).map(token).collect();
    let ranks: HashMap<Vec<u8>, u32> = tokens.iter().cloned().zip(0..).collect();
    let characters = characters();
    let written =
        |bytes: &[u8]| -> String { bytes.iter().map(|b| characters[usize::from(*b)]).collect() };
    let merges = tokens.iter().filter_map(|token| halves(token, &ranks));
    let merges = merges.map(|(left, right)| (written(&left), written(&right))).collect();
    let vocabulary: Vec<(String, u32)> =
        tokens.iter().map(|token| written(token)).zip(0..).collect();
    let model = BPE::builder()
        .vocab_and_merges(
            vocabulary.into_iter().collect::<tokenizers::models::bpe::Vocab>(),
            merges,
        )
        .ignore_merges(true)
        .build()
        .expect("a model");
    let pattern = patterns(pattern).expect("a pattern")[0];
    // `$` is the end of each line to the engine of `tokenizers`, and of the text to the others.
    let pattern = SplitPattern::Regex(pattern.replace('$', r"\z"));
    let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).expect("a pattern");
    let bytes = ByteLevel::new(false, false, false);
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(Sequence::new(vec![split.into(), bytes.into()])));
    tokenizer
}
