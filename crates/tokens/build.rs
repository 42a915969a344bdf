//! Writes the vocabularies and the classes of characters as tables that are ready when the program
//! is: nothing is parsed at run time, and no page of a table is read before a count needs it.
//!
//! The table of a vocabulary is the bytes of all tokens by rank, where each begins, slots that find
//! a token by the hash of its bytes, and slots that find what two tokens merge to. The tokens
//! themselves are in `vocabularies/`, each as a byte that tells its length and its bytes, by rank.
//! `src/vocabulary.rs` reads the table.
//!
//! The classes are in `vocabularies/classes.runs`: runs of characters of one class, each as a byte
//! that is the class and three that tell how many characters it has, the lowest first.
//! `src/classes.rs` reads their table.

#[cfg(feature = "bpe")]
#[path = "src/slot_hash.rs"]
mod slot_hash;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/slot_hash.rs");
    println!("cargo::rerun-if-changed=vocabularies");
    #[cfg(feature = "bpe")]
    if let Err(error) = tables::write_all() {
        println!("cargo::error=cannot write the tables of tokens: {error}");
    }
}

#[cfg(feature = "bpe")]
mod tables {
    use std::{env, error::Error, fs, path::Path};

    use crate::slot_hash::{RANK_BITS, pair_bit, pair_hash, pair_key, slot_hash, slot_tag};

    /// No token.
    const NO_RANK: u32 = 1 << RANK_BITS;

    pub(super) fn write_all() -> Result<(), Box<dyn Error>> {
        let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
        let folder = Path::new(&folder);
        write_classes(folder)?;
        write_vocabulary(folder, "o200k")?;
        write_vocabulary(folder, "cl100k")
    }

    /// Blocks of 256 characters, and which block each 256 characters have.
    fn write_classes(folder: &Path) -> Result<(), Box<dyn Error>> {
        let runs = fs::read("vocabularies/classes.runs")?;
        let mut classes = Vec::new();
        for run in runs.chunks_exact(4) {
            let &[class, low, middle, high] = run else { continue };
            let length = u32::from_le_bytes([low, middle, high, 0]) as usize;
            classes.resize(classes.len() + length, class);
        }
        if classes.len() != 0x11_0000 {
            return Err("vocabularies/classes.runs does not cover all characters".into());
        }
        let mut blocks: Vec<&[u8]> = Vec::new();
        let mut numbers = Vec::new();
        for block in classes.chunks(256) {
            let number = blocks.iter().position(|known| *known == block).unwrap_or(blocks.len());
            if number == blocks.len() {
                blocks.push(block);
            }
            numbers.push(u8::try_from(number)?);
        }
        fs::write(folder.join("classes.numbers"), numbers)?;
        fs::write(folder.join("classes.blocks"), blocks.concat())?;
        Ok(())
    }

    fn write_vocabulary(folder: &Path, name: &str) -> Result<(), Box<dyn Error>> {
        let listed = fs::read(Path::new("vocabularies").join(format!("{name}.tokens")))?;
        let mut tokens = Vec::new();
        let mut rest = listed.as_slice();
        while let Some((length, after)) = rest.split_first() {
            let (token, after) = after
                .split_at_checked(usize::from(*length))
                .ok_or_else(|| format!("vocabularies/{name}.tokens ends inside a token"))?;
            tokens.push(token);
            rest = after;
        }
        if tokens.len() >= (1 << RANK_BITS) - 1 {
            return Err(format!("vocabularies/{name}.tokens has too many tokens").into());
        }
        let mut starts = vec![0_u32];
        let mut end = 0;
        for token in &tokens {
            end += u32::try_from(token.len())?;
            starts.push(end);
        }
        let mut bytes = [0_u32; 256];
        for (rank, token) in (0..).zip(&tokens) {
            if let &&[byte] = token {
                bytes[usize::from(byte)] = rank;
            }
        }
        let words =
            |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        let pairs = pairs(&tokens, &bytes);
        let pair_words: Vec<u8> = pairs.iter().flat_map(|word| word.to_le_bytes()).collect();
        let of_bytes: Vec<u32> = (0..=0xffff)
            .map(|two: usize| {
                let key = pair_key(bytes[two >> 8], bytes[two & 0xff]);
                merged(&pairs, key).unwrap_or(NO_RANK)
            })
            .collect();
        let (numbers, blocks) = chars(&tokens, &bytes, &pairs);
        let (before, after) = cuts(&tokens);
        fs::write(folder.join(format!("{name}.char_numbers")), numbers)?;
        fs::write(folder.join(format!("{name}.char_blocks")), words(&blocks))?;
        fs::write(folder.join(format!("{name}.cuts_before")), words(&before))?;
        fs::write(folder.join(format!("{name}.cuts_after")), words(&after))?;
        fs::write(folder.join(format!("{name}.tokens")), tokens.concat())?;
        fs::write(folder.join(format!("{name}.starts")), words(&starts))?;
        fs::write(folder.join(format!("{name}.bytes")), words(&bytes))?;
        fs::write(folder.join(format!("{name}.byte_pairs")), words(&of_bytes))?;
        fs::write(folder.join(format!("{name}.slots")), words(&slots(&tokens)))?;
        fs::write(folder.join(format!("{name}.pair_bits")), pair_bits(&pairs))?;
        fs::write(folder.join(format!("{name}.pairs")), pair_words)?;
        Ok(())
    }

    /// Ten bits for each pair, of which few more than one in ten is set.
    fn pair_bits(pairs: &[u64]) -> Vec<u8> {
        let mut bits = vec![0_u8; pairs.len()];
        for pair in pairs.iter().filter(|pair| **pair != 0) {
            let bit = pair_bit(pair_hash(pair >> RANK_BITS), bits.len() * 8);
            bits[bit / 8] |= 1 << (bit % 8);
        }
        bits
    }

    /// Two to four slots for a token, so that most look-ups end at the first.
    fn slots(tokens: &[&[u8]]) -> Vec<u32> {
        let mask = (tokens.len() * 2).next_power_of_two() - 1;
        let mut slots = vec![0_u32; mask + 1];
        for (rank, token) in (1..).zip(tokens) {
            let hash = slot_hash(token);
            let mut slot = hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = slot_tag(hash) | rank;
        }
        slots
    }

    /// The pair of tokens that each token is merged from, as the key of the pair and the rank.
    ///
    /// A token is merged from one pair only, whatever stands around it: the merges inside of its
    /// bytes are those of these bytes alone, since none crosses their ends before it is made.
    fn pairs(tokens: &[&[u8]], bytes: &[u32; 256]) -> Vec<u64> {
        let mask = (tokens.len() * 5 / 4).next_power_of_two() - 1;
        let mut pairs = vec![0_u64; mask + 1];
        for (rank, token) in (0_u32..).zip(tokens) {
            let mut parts: Vec<u32> = token.iter().map(|byte| bytes[usize::from(*byte)]).collect();
            while parts.len() > 2
                && let Some((rank, at)) = lowest(&pairs, &parts)
            {
                parts[at - 1] = rank;
                parts.remove(at);
            }
            // Other tokens are not made by merges: they are found by their bytes alone.
            if let &[left, right] = parts.as_slice() {
                let key = pair_key(left, right);
                let mut slot = pair_hash(key) as usize & mask;
                while pairs[slot] != 0 {
                    slot = (slot + 1) & mask;
                }
                pairs[slot] = key << RANK_BITS | u64::from(rank);
            }
        }
        pairs
    }

    /// The rank of each character of several bytes that merges to one token when it stands alone,
    /// and [`NO_RANK`] for any other: in blocks of 64, and the block of each 64 as two bytes.
    fn chars(tokens: &[&[u8]], bytes: &[u32; 256], pairs: &[u64]) -> (Vec<u8>, Vec<u32>) {
        let mut ranks = vec![NO_RANK; 0x11_0000];
        for (rank, token) in (0_u32..).zip(tokens) {
            let Some(char) = str::from_utf8(token).ok().and_then(|text| {
                let mut chars = text.chars();
                chars.next().filter(|char| chars.next().is_none() && !char.is_ascii())
            }) else {
                continue;
            };
            let mut parts: Vec<u32> = token.iter().map(|byte| bytes[usize::from(*byte)]).collect();
            let mut highest = 0;
            while let Some((merged, at)) = lowest(pairs, &parts) {
                parts[at - 1] = merged;
                parts.remove(at);
                highest = highest.max(merged);
            }
            if parts == [rank] && highest == rank {
                ranks[char as usize] = rank;
            }
        }
        let mut blocks: Vec<&[u32]> = Vec::new();
        let mut numbers = Vec::new();
        for block in ranks.chunks(64) {
            let number = blocks.iter().position(|known| *known == block).unwrap_or(blocks.len());
            if number == blocks.len() {
                blocks.push(block);
            }
            numbers.extend((number as u16).to_le_bytes());
        }
        (numbers, blocks.concat())
    }

    /// The lowest rank of the tokens that go beyond a border of two characters and cut the one
    /// after it, and of those that cut the one before it; by the last byte before the border and
    /// the first one after it. Of the cut character's byte the lowest six bits count.
    fn cuts(tokens: &[&[u8]]) -> (Vec<u32>, Vec<u32>) {
        let (mut before, mut after) = (vec![NO_RANK; 1 << 14], vec![NO_RANK; 1 << 14]);
        let is_inside = |byte: &u8| matches!(byte, 0x80..0xc0);
        let note = |cuts: &mut [u32], cut: u8, other: u8, rank: u32| {
            let place = &mut cuts[usize::from(cut & 0x3f) << 8 | usize::from(other)];
            *place = rank.min(*place);
        };
        for (rank, token) in (0_u32..).zip(tokens) {
            let head = token.iter().take_while(|byte| is_inside(byte)).count();
            if head > 0 && head < token.len() {
                note(&mut after, token[head - 1], token[head], rank);
            }
            let tail = token.iter().rposition(|byte| !is_inside(byte)).unwrap_or(0);
            let length = match token[tail] {
                0..0xc0 => 1,
                0xc0..0xe0 => 2,
                0xe0..0xf0 => 3,
                _ => 4,
            };
            if tail > 0 && token.len() - tail < length {
                note(&mut before, token[tail], token[tail - 1], rank);
            }
        }
        (before, after)
    }

    /// The lowest rank that two parts beside each other merge to, and where the second of them is.
    fn lowest(pairs: &[u64], parts: &[u32]) -> Option<(u32, usize)> {
        let joined = |at: usize| Some((merged(pairs, pair_key(parts[at - 1], parts[at]))?, at));
        (1..parts.len()).filter_map(joined).min()
    }

    fn merged(pairs: &[u64], key: u64) -> Option<u32> {
        let mask = pairs.len() - 1;
        let mut slot = pair_hash(key) as usize & mask;
        while pairs[slot] != 0 {
            if pairs[slot] >> RANK_BITS == key {
                return Some((pairs[slot] & ((1 << RANK_BITS) - 1)) as u32);
            }
            slot = (slot + 1) & mask;
        }
        None
    }
}
