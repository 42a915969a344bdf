"""Writes text of many languages as groups for `count`: texts with a NUL between them.

    python3 languages.py FOLDER

The texts are those of an ordinary Linux system, none of them twice. `manuals.txt` holds manual
pages (packages `manpages-de` and so on), `messages.txt` what programs say (`/usr/share/locale*`).
"""

import gettext
import gzip
import pathlib
import sys

LARGEST = 430_000
MANUALS = ["de", "fr", "ja", "ko", "ru", "tr", "uk", "zh_CN"]
MESSAGES = ["ar", "he", "hi", "ja", "ru", "th", "vi", "zh_CN"]


def capped(texts):
    """Distinct texts of `LARGEST` bytes at most, in the order given."""
    seen, size = set(), 0
    for text in texts:
        size += len(text.encode())
        if size > LARGEST:
            break
        if text not in seen:
            seen.add(text)
            yield text


def manuals(language):
    for path in sorted(pathlib.Path("/usr/share/man", language).rglob("*.gz")):
        yield gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


def messages(language):
    for path in sorted(pathlib.Path("/usr/share").glob(f"locale*/{language}/LC_MESSAGES/*.mo")):
        try:
            catalog = gettext.GNUTranslations(path.open("rb"))._catalog
        except (OSError, UnicodeDecodeError):
            continue
        text = "\n".join(of for key, of in catalog.items() if key and isinstance(of, str))
        yield text.replace("\0", " ")


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, languages, read in [("manuals", MANUALS, manuals), ("messages", MESSAGES, messages)]:
        texts = [text for language in languages for text in capped(read(language))]
        (folder / f"{name}.txt").write_text("\0".join(texts), encoding="utf-8")


main()
