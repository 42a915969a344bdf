//! Writes the vocabularies as tables that are ready when the program is: nothing is parsed at
//! run time, and no page of a table is read before a count needs it.
//!
//! A table is the bytes of all tokens by rank, where each begins, and slots that find a token by
//! the hash of its bytes. `src/vocabulary.rs` reads it. The tokens themselves are in
//! `vocabularies/`, each as a byte that tells its length and its bytes, by rank.

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

    use crate::slot_hash::slot_hash;

    pub(super) fn write_all() -> Result<(), Box<dyn Error>> {
        let folder = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
        let folder = Path::new(&folder);
        write(folder, "o200k")?;
        write(folder, "cl100k")
    }

    fn write(folder: &Path, name: &str) -> Result<(), Box<dyn Error>> {
        let listed = fs::read(Path::new("vocabularies").join(format!("{name}.tokens")))?;
        let mut bytes = Vec::new();
        let mut starts = vec![0_u32];
        let mut rest = listed.as_slice();
        while let Some((length, after)) = rest.split_first() {
            let (token, after) = after
                .split_at_checked(usize::from(*length))
                .ok_or_else(|| format!("vocabularies/{name}.tokens ends inside a token"))?;
            bytes.extend_from_slice(token);
            starts.push(u32::try_from(bytes.len())?);
            rest = after;
        }
        // Two to four slots for a token, so that most look-ups end at the first.
        let mask = ((starts.len() - 1) * 2).next_power_of_two() - 1;
        let mut slots = vec![0_u32; mask + 1];
        for (rank, ends) in (1..).zip(starts.windows(2)) {
            let &[start, end] = ends else { continue };
            let token = bytes.get(start as usize..end as usize).unwrap_or_default();
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
