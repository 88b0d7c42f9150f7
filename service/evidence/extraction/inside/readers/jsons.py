"""JSON, as it stands. The text comes first: it is there whether or not it parses."""

from pathlib import Path

from service.evidence.extraction.inside.contract import Output
from service.evidence.extraction.inside.readers.texts import decoded
from service.evidence.integrity.checker import texts


def read_json(path: Path, out: Output) -> None:
    text = decoded(path, out, "code")
    if text is not None:
        out.part("code", "", text)
        for name, value in texts.read_json(path, out.kind).facts.items():
            out.fact(name, value)


def read_jsonl(path: Path, out: Output) -> None:
    text = decoded(path, out, "code")
    if text is not None:
        out.part("code", "", text)
        for name, value in texts.read_jsonl(path, out.kind).facts.items():
            out.fact(name, value)
