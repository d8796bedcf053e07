"""Sentences in plain words, extracted from docstrings."""

import inspect
import itertools
import re
from collections.abc import Iterator

_ROLE = re.compile(r":[\w:]+:`~?(?:[^`<]*<)?([^`>]*)>?`")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)|`([^`<]+?)\s*<[^`]*>`_*")
_MARKUP = re.compile(
    r"`+|\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)|\|(?=\w)|(?<=`)_+"
)
_URL = re.compile(r"<?\bhttps?://\S+")
_SENTENCE_LABEL = re.compile(r"^\([\w ]+\) ")
_QUOTES = re.compile(r"(?<!\w)['\"]+|['\"]+(?!\w)")
_SIGNATURE = re.compile(
    r"^[\w.]+\([^()]*(?:\([^()]*\)[^()]*)*\)[ \t]*(-+>[ \t]*|: |--|$)", re.M
)
_RESULT = re.compile(r"^\w+[.,:;]\s+")
_BLOCK = re.compile(
    r"^(>>>|\.\. |:(param|type|returns?|rtype|raises?|arg|i?var)\b|@\w+"
    r"|[-=~*#]{3,}|--$"
    r"|(Args?|Arguments|Parameters?|Returns?|Raises|Examples?|Usage|Notes?"
    r"|Attributes|Yields|Inputs?|Outputs?|Deprecated):?\s*$)"
)
_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bcf)(?<!\ba\.k\.a)"
    r"(?<!\bw\.r\.t)[.!?](?=\s|[)\"']?$)"
)
_BOILERPLATE = re.compile(
    r"\b(todo|fixme|xxx|deprecated|deprecation|\w*docstring|undocumented"
    r"|obsolete|auto-?generated|machine generated|internal use|private"
    r"|do not (use|call)|not implemented|(parent|base|super) ?class\.?$"
    r"|which canvas itself)\b"
    r"|^(see|same as|like|alias|synonym|overrid\w*|inherit\w*|implements?"
    r"|internal|helper|backwards?|legacy|mixin|placeholder|this is|no-op"
    r"|refer to|please"
    r"|(note|warning|error|usage|examples?|constructor|copyright):"
    r"|initialize[sd]? self|version of|for docs|visit a)\b",
    re.IGNORECASE,
)
# Code, fields, rules, lists, "x : int" and "Args:"; an indented line
# describes an argument or is code.
_NOT_PROSE = re.compile(
    r"\s+\S|>>>|\.\. |:\w[^:]*:(\s|$)|@\w|[-=~*#+|^]{2,}|[-*+] "
    r"|\(?(\d+|[a-z])[.)] |[\w.*, ]+ : |[\w ]{1,20}:$|[\w.]+: "
)
_NEXT_SENTENCE = re.compile(
    r"(?<![ (]e\.g\.)(?<![ (]i\.e\.)(?<=[.!?])\s+(?=[A-Z`'\"*:(])|\n\s*\n"
)
_JOINTS = str.maketrans("", "", "-/'")
_MIN_WORDS = 3
_MAX_WORDS = 32


def first_sentence(doc: str) -> str | None:
    """Returns the first sentence of a docstring in plain words.

    Markup, signatures and the closing full stop are removed. `None` is returned
    for a sentence of fewer than 3 or more than 32 words, for boilerplate, and
    for text that is not prose.
    """
    text = _plain(_first_paragraph(doc))
    sentence = _END.split(text, maxsplit=1)[0].strip(" .,:;!?-_=")
    words = sentence.split()
    if not _MIN_WORDS <= len(words) <= _MAX_WORDS:
        return None
    if _BOILERPLATE.search(sentence) or not _is_prose(words):
        return None
    return sentence


def sentence_runs(doc: str) -> Iterator[list[str]]:
    """Yields the runs of consecutive plain sentences of a docstring."""
    lines = [
        "" if _NOT_PROSE.match(line) else f"{line}\n"
        for line in inspect.cleandoc(doc).splitlines()
    ]
    for prose, block in itertools.groupby(lines, bool):
        if not prose:
            continue
        parts = _NEXT_SENTENCE.split("".join(block))
        sentences = map(first_sentence, parts)
        for whole, run in itertools.groupby(sentences, bool):
            if whole:
                yield [sentence for sentence in run if sentence]


def _first_paragraph(doc: str) -> str:
    lines: list[str] = []
    doc = _without_signature(doc.strip())
    for line in map(str.strip, doc.splitlines()):
        if lines and (not line or _BLOCK.match(line)):
            break
        if line and not _BLOCK.match(line):
            lines.append(line)
    return " ".join(lines)


def _without_signature(doc: str) -> str:
    """Reduces `D.pop(k) -> v, remove the key` to `remove the key`."""
    signature = _SIGNATURE.match(doc)
    if not signature:
        return doc
    line, _, rest = doc[signature.end() :].partition("\n")
    text, results = _RESULT.subn("", line)
    is_prose = len(text.split()) >= _MIN_WORDS and (results or not rest.strip())
    if is_prose:
        return f"{text}\n{rest}"
    return _without_signature(rest.strip(" \n-"))


def _plain(text: str) -> str:
    text = _ROLE.sub(lambda m: m[1].rsplit(".", 1)[-1].strip("()"), text)
    text = _LINK.sub(lambda m: m[1] or m[2], text)
    for noise in (_URL, _MARKUP, _QUOTES, _SENTENCE_LABEL):
        text = noise.sub("", text)
    return " ".join(text.split())


def _is_prose(words: list[str]) -> bool:
    """Returns whether most words are of ASCII letters and none is code."""
    plain = sum(
        word.strip(",.:;()'\"").translate(_JOINTS).isalpha() for word in words
    )
    text = " ".join(words)
    return (
        text.isascii()
        and text[0].isalnum()
        and "(" not in words[0]
        and plain >= 0.7 * len(words)
        and not re.search(r"[{}\\|]|>>>|==|\w\(\w*,|__\w|[~^_=]{2}", text)
    )


# "* ", "1. ", "axis: " and "**kwargs (optional): " before a description.
_LABEL = re.compile(
    r"(?:[-*+]|\(?\d+[.)])\s+"
    r"|`{0,2}\*{0,2}\w[\w, .*]{0,40}`{0,2}(?: ?\([^)]*\))?:\s+(?=\S+\s+\S)"
)
_TYPE = re.compile(r"[\w*, .`]+ : ")  # "axis : int, optional"


def prose_sentences(text: str) -> list[str]:
    """Returns the plain sentences of a docstring or of some paragraphs of one.

    `sentence_runs` leaves out what is indented. Here the descriptions of
    arguments and the items of lists are read as well; code, examples, types and
    headings are left out. Each sentence ends with a full stop.
    """
    return [
        f"{sentence}."
        for block in _blocks(text)
        for run in sentence_runs("\n".join(block))
        for sentence in run
    ]


def _blocks(text: str) -> Iterator[list[str]]:
    """Yields groups of lines that form a text, without indentation.

    The lines of a group have one indentation; those after a label, such as
    "axis: ", are indented further than it.
    """
    block: list[str] = []
    first, following = 0, 0
    in_example = in_fence = False
    for line in text.splitlines():
        indent, line = len(line) - len(line.lstrip()), line.strip()
        if line.startswith("```"):
            in_fence = not in_fence
            line = ""
        in_example = bool(line) and (in_example or line.startswith(">>>"))
        if in_example or in_fence or _TYPE.match(line):
            line = ""
        label = _LABEL.match(line)
        if label:
            line = line[label.end() :]
        continues = not label and (
            indent > first if following < 0 else indent == following
        )
        if continues:
            following = indent
        if block and not (line and continues):
            yield block
            block = []
        if line and not block:
            first, following = indent, -1 if label else indent
        if line:
            block.append(line)
    if block:
        yield block
