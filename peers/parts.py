"""Sums what callgrind counted of a capture by its parts: instructions a frame.

    valgrind --tool=callgrind --callgrind-out-file=out --toggle-collect='capture::loops::captured' \\
        target/release/capture FILE 10000 profile
    callgrind_annotate --auto=no --threshold=100 out | python3 parts.py 10000

A line of the profile is a file and the function that it was inlined into. Our own file says what a
line is for; else the function does.
"""

import re
import sys

PARTS = [
    ("malloc and free", r"malloc\.c|arena\.c|__rust_(re|de)?alloc|__rdl_"),
    ("copies", r"memmove|memcpy|memset"),
    ("comparing", r"memcmp"),
    ("counting", r"estimate"),
    ("dropping frames and snapshots", r"drop_in_place|drop_slow|Drop>::drop"),
    ("tables of the segment", r"archive"),
    ("bytes of the frame", r"veil.{1,2}packed|encode"),
    ("pairs of calls and results", r"veil.{1,2}pairs"),
    ("history", r"veil.{1,2}history"),
    ("veil", r"veil|held"),
    ("chunks and their text", r"hud|snapshot|memchr"),
]
LINE = re.compile(r"\s*([\d,]+) \([^)]*\)\s+(\S+?):(.*)")


def part_of(file, function):
    is_own = "/src/" in file and not re.search(r"/rustc/|/registry/", file)
    for text in ([file] if is_own else []) + [file.rpartition("/")[2], function]:
        for name, pattern in PARTS:
            if re.search(pattern, text):
                return name
    return "the rest"


def main():
    frames = int(sys.argv[1])
    sums = {}
    for line in sys.stdin:
        found = LINE.match(line)
        if found:
            count, file, function = found.groups()
            part = part_of(file, function)
            sums[part] = sums.get(part, 0) + int(count.replace(",", ""))
    for part, count in sorted(sums.items(), key=lambda pair: -pair[1]):
        print(f"{part:32} {count / frames:8.0f}")
    print(f"{'all':32} {sum(sums.values()) / frames:8.0f}")


main()
