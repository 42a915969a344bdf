//! Writes the vocabularies as tables that are ready when the program is: nothing is parsed at
//! run time, and no page of a table is read before a count needs it.
//!
//! A table is the bytes of all tokens by rank, where each begins, and slots that find a token by
//! the hash of its bytes. `src/vocabulary.rs` reads it.

#[cfg(feature = "bpe")]
#[path = "src/slot_hash.rs"]
mod slot_hash;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/slot_hash.rs");
    #[cfg(feature = "bpe")]
    if let Err(error) = tables::write_all() {
        println!("cargo::error=cannot write the tables of tokens: {error}");
    }
}

#[cfg(feature = "bpe")]
mod tables {
    use std::{env, error::Error, fs, path::Path};

    use crate::slot_hash::slot_hash;
    use tiktoken_rs::CoreBPE;

    pub(super) fn write_all() -> Result<(), Box<dyn Error>> {
        let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
        let folder = Path::new(&folder);
        write(folder, "o200k", &tiktoken_rs::o200k_base()?)?;
        write(folder, "cl100k", &tiktoken_rs::cl100k_base()?)
    }

    fn write(folder: &Path, name: &str, encoder: &CoreBPE) -> Result<(), Box<dyn Error>> {
        // Ranks count up from zero, and a gap divides them from the special tokens.
        let tokens: Vec<Vec<u8>> =
            (0..).map_while(|rank| encoder.decode_bytes(&[rank]).ok()).collect();
        let mut bytes = Vec::new();
        let mut starts = vec![0_u32];
        for token in &tokens {
            bytes.extend_from_slice(token);
            starts.push(u32::try_from(bytes.len())?);
        }
        // Two to four slots for a token, so that most look-ups end at the first.
        let mask = (tokens.len() * 2).next_power_of_two() - 1;
        let mut slots = vec![0_u32; mask + 1];
        for (rank, token) in (1..).zip(&tokens) {
            let mut slot = slot_hash(token) & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = rank;
        }
        let words =
            |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        fs::write(folder.join(format!("{name}.bytes")), bytes)?;
        fs::write(folder.join(format!("{name}.starts")), words(&starts))?;
        fs::write(folder.join(format!("{name}.slots")), words(&slots))?;
        Ok(())
    }
}
