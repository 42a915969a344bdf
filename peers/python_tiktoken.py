"""Counts the lines that `exact TEXTS SEED FILE` wrote with Python's tiktoken.

    pip install tiktoken
    python3 python_tiktoken.py FILE

A pipe needs no room: `exact 1000000 1 >(python3 python_tiktoken.py /dev/stdin)`.

The ranks are those of `crates/tokens/vocabularies`, so nothing is fetched.
"""

import json
import pathlib
import sys

import tiktoken

FOLDER = pathlib.Path(__file__).parent.parent / "crates/tokens/vocabularies"
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PATTERNS = {
    "o200k": "|".join([
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTION + "?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTION + "?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]),
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
}


def encoding(name):
    listed = (FOLDER / f"{name}.tokens").read_bytes()
    ranks, at = {}, 0
    while at < len(listed):
        end = at + 1 + listed[at]
        ranks[listed[at + 1 : end]] = len(ranks)
        at = end
    return tiktoken.Encoding(name, pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens={})


def main():
    encodings = [encoding("o200k"), encoding("cl100k")]
    texts = 0
    for line in open(sys.argv[1], encoding="utf-8"):
        text, *counts = json.loads(line)
        found = [len(encoding.encode_ordinary(text)) for encoding in encodings]
        assert found == counts, (text, found, counts)
        texts += 1
    print(f"{texts} texts: all counts are those of Python's tiktoken {tiktoken.__version__}")


main()
