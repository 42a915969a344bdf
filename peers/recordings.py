"""Writes recordings as groups for `count` and `capture`: texts with a NUL between them.

    python3 recordings.py FOLDER [DATA]

The texts are the contents of messages and the arguments of tool calls, none of them twice.
`chat.txt` holds those of tau-bench, `code.txt` those of SWE-agent and mini-swe-agent. DATA is the
folder of the recordings, `../../shared/data` unless it is given.
"""

import json
import pathlib
import sys

GROUPS = {"chat": "A-openai-chat/tau-bench", "code": "D-swe-agent"}


def sessions(document):
    """The lists of messages in a file: one of each session."""
    for session in document if isinstance(document, list) else [document]:
        for key in ("traj", "messages", "history"):
            if isinstance(session.get(key), list):
                yield session[key]
                break


def texts(message):
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if text:
            yield text
    for call in message.get("tool_calls") or []:
        yield call["function"]["arguments"]


def main():
    folder = pathlib.Path(sys.argv[1])
    beside = pathlib.Path(__file__).resolve().parent / "../../shared/data"
    data = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else beside
    for name, group in GROUPS.items():
        files = [path for path in sorted((data / group).rglob("*")) if path.is_file()]
        messages = [
            message
            for path in files
            for session in sessions(json.loads(path.read_text(encoding="utf-8")))
            for message in session
        ]
        found = [text.replace("\0", " ") for message in messages for text in texts(message)]
        found = dict.fromkeys(found)
        (folder / f"{name}.txt").write_text("\0".join(found), encoding="utf-8")


main()
