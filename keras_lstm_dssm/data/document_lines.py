"""Parses the lines of documents.jsonl, and says what is wrong with a line."""

import json
from typing import Any, NamedTuple

from keras_lstm_dssm.data.judged_queries import SPLITS
from keras_lstm_dssm.text import split_sentences

LINE_EXPECTED = (
    'a JSON object on one line: "_id", "text" or "sentences", and perhaps'
    ' "title", "summary", "class" and "split"'
)
_LONGEST = 1 << 24


class Document(NamedTuple):
    """Holds the sentences, title, summary, class and split of a document.

    Attributes:
        id: The document's id, without white space.
        title: The title; "" without one. It is not a part of the sentences.
        sentences: The sentences of the body, at least one, none empty.
        summary: The sentences of the summary; none without a summary. They
            need not occur in the body.
        label: The document's class; "" without one.
        split: "train", "dev" or "test".

    Example:
    >>> sentences = ["Warm the glue.", "Wait."]
    >>> document = Document("m1", "Glue", sentences, ["Warm it."])
    >>> document.sentences[0], document.split
    ('Warm the glue.', 'train')
    """

    id: str
    title: str
    sentences: list[str]
    summary: list[str]
    label: str = ""
    split: str = "train"


def parse_document(line: bytes) -> Document | str:
    r"""Parses a line into a document, or returns what is wrong with the line.

    White space within a title or sentence becomes a single space, and empty
    sentences are left out. Unknown fields are ignored.

    >>> parse_document(b'{"_id": "d1", "text": "Sort it. It is stable."}')
    Document(id='d1', title='', sentences=['Sort it.', 'It is stable.'],
             summary=[], label='', split='train')
    >>> parse_document(b'{"_id": "d1", "sentences": "Sort it."}')
    'sentences that are not a list of strings'
    """
    if len(line) > _LONGEST:
        return f"a line of more than {_LONGEST >> 20} MB"
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError:
        return "invalid UTF-8"
    except (ValueError, RecursionError):
        return "no JSON"
    if not isinstance(row, dict):
        return "no JSON object"
    try:
        return Document(
            _id(row),
            _line(_string(row, "title")),
            _sentences(row),
            _summary(row),
            _line(_string(row, "class")),
            _split(row),
        )
    except _Problem as problem:
        return str(problem)


class _Problem(Exception):
    """Raised for a wrong field; the message says what is wrong with it."""


def _id(row: dict[str, Any]) -> str:
    if "_id" not in row:
        raise _Problem("no _id")
    key = _string(row, "_id")
    if key.split() != [key]:
        raise _Problem("an _id that is empty or has white space")
    return key


def _string(row: dict[str, Any], name: str) -> str:
    """Returns a field that is a string or a whole number; "" without it."""
    value = row.get(name)
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise _Problem(f"{name} that is not a string")
    return value


def _sentences(row: dict[str, Any]) -> list[str]:
    text, sentences = row.get("text"), row.get("sentences")
    if text is not None and sentences is not None:
        raise _Problem("both text and sentences")
    if text is None and sentences is None:
        raise _Problem("neither text nor sentences")
    if sentences is None:
        parts = split_sentences(_string(row, "text"))
    else:
        parts = _list(sentences, "sentences that are not a list of strings")
    if not (parts := _filled(parts)):
        raise _Problem("an empty document")
    return parts


def _summary(row: dict[str, Any]) -> list[str]:
    value = row.get("summary")
    if value is None:
        return []
    if isinstance(value, str):
        return _filled(split_sentences(value))
    problem = "a summary that is neither a string nor a list of strings"
    return _filled(_list(value, problem))


def _split(row: dict[str, Any]) -> str:
    split = _string(row, "split") or SPLITS[0]
    if split not in SPLITS:
        raise _Problem(f"a split other than {', '.join(SPLITS)}")
    return split


def _list(value: Any, problem: str) -> list[str]:
    if not isinstance(value, list) or not all(
        isinstance(part, str) for part in value
    ):
        raise _Problem(problem)
    return value


def _filled(parts: list[str]) -> list[str]:
    return [line for line in map(_line, parts) if line]


def _line(text: str) -> str:
    """Reduces white space to single spaces."""
    return " ".join(text.split())
