//! Compares counts with tiktoken-rs on as many random and hostile texts as are asked for.
//!
//! `exact 1000000 SEED` prints how many texts were compared, and stops at the first difference. A
//! third argument is a file or a pipe to write the texts and their counts to, as lines of JSON
//! strings and numbers, for `python_tiktoken.py`.

use std::io::Write as _;

use afterimage_tokens::{Bpe, TokenCounter};

/// Words, white space, signs and characters of every class that a pattern names.
const SNIPPETS: &[&str] = &[
    "the ",
    "Hello",
    "HELLO",
    "helloWorld",
    "it's",
    "IT'S",
    "we'LL",
    "'ve",
    "x'",
    "'s",
    "'",
    "''",
    "ſ",
    "'ſ",
    "A'ſ",
    "don’t",
    "1",
    "12",
    "1234567",
    "½",
    "४",
    "Ⅷ",
    " ",
    "  ",
    "        ",
    "\t",
    "\u{a0}",
    "\u{3000}",
    "\u{2028}",
    "\u{85}",
    "\n",
    "\r\n",
    "\n\n\n",
    "\r",
    " \n ",
    "!",
    "?!",
    "...",
    "----",
    "//",
    "/",
    "\n/",
    "!\n/",
    "<|endoftext|>",
    "{\"a\": [1, 2]}",
    "漢字",
    "天气很好，",
    "かな",
    "カナ",
    "한국어",
    "é",
    "e\u{301}",
    "\u{301}",
    "\u{301}\u{302}",
    "ʰ",
    "ǅ",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "🎈",
    "👩‍👩‍👧",
    "🇨🇭",
    "ß",
    "İ",
    "Ω",
    "\0",
    "\u{7f}",
    "ไทยภาษา",
    "हिन्दी",
    "العربية",
    "Привет",
    "tokenization",
    "fn main() {",
    "0x7fff",
    "aGVsbG8gd29ybGQ",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit
    }

    fn char(&mut self) -> char {
        let limit = [0x80, 0x250, 0x3100, 0xa000, 0x11_0000][self.below(5)];
        char::from_u32(self.below(limit) as u32).unwrap_or(' ')
    }

    /// One of a script whose characters some tokens cut.
    fn letter(&mut self) -> char {
        let starts =
            [0x400, 0x530, 0x5d0, 0x620, 0x900, 0xb80, 0xe00, 0x10d0, 0x1780, 0x3040, 0x4e00];
        let start = starts[self.below(starts.len())];
        char::from_u32(start + self.below(0x60) as u32).unwrap_or(' ')
    }

    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.below(12) {
            match self.below(9) {
                0 => text.extend((0..1 + self.below(8)).map(|_| self.char())),
                1 => {
                    let unit = if self.below(2) == 0 {
                        SNIPPETS[self.below(SNIPPETS.len())].to_owned()
                    } else {
                        self.char().to_string()
                    };
                    text.push_str(&unit.repeat(1 + self.below(60)));
                }
                2 => {
                    let letters = b"abcdefgHIJKLM0123456789+/='";
                    text.extend(
                        (0..1 + self.below(90))
                            .map(|_| char::from(letters[self.below(letters.len())])),
                    );
                }
                3 => text.extend((0..1 + self.below(20)).map(|_| self.letter())),
                _ => text.push_str(SNIPPETS[self.below(SNIPPETS.len())]),
            }
        }
        text
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |otherwise| {
        arguments.next().map_or(otherwise, |number| number.parse::<u64>().expect("a number"))
    };
    let (texts, seed) = (number(1_000_000), number(1));
    let mut file = arguments
        .next()
        .map(|path| std::io::BufWriter::new(std::fs::File::create(path).expect("a file")));
    let peers = [
        (Bpe::o200k(), tiktoken_rs::o200k_base_singleton()),
        (Bpe::cl100k(), tiktoken_rs::cl100k_base_singleton()),
    ];
    let mut random = Random(seed.max(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut bytes = 0;
    for index in 0..texts {
        let text = random.text();
        bytes += text.len();
        let counts = peers.each_ref().map(|(counter, peer)| {
            let found = counter.count(&text);
            let expected = peer.count_ordinary(&text);
            assert_eq!(found, expected, "text {index}, {}: {text:?}", counter.id());
            assert_eq!(counter.count_up_to(&text, expected), Some(expected));
            assert_eq!(counter.count_up_to(&text, expected - 1), None);
            found
        });
        if let Some(file) = file.as_mut() {
            let escaped: String =
                text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            writeln!(file, "[\"{escaped}\", {}, {}]", counts[0], counts[1]).expect("it is written");
        }
    }
    println!("{texts} texts of {bytes} bytes: all counts are those of tiktoken-rs");
}
