"""The first sentence of a doc string, as somebody would ask for it."""

import re

_ROLE = re.compile(r":[\w:]+:`~?(?:[^`<]*<)?([^`>]*)>?`")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)|`([^`<]+?)\s*<[^`]*>`_*")
_MARKUP = re.compile(
    r"`+|\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)|\|(?=\w)|(?<=`)_+"
)
_URL = re.compile(r"<?\bhttps?://\S+")
_LABEL = re.compile(r"^\([\w ]+\) ")
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
_JOINTS = str.maketrans("", "", "-/'")
MIN_WORDS = 3
MAX_WORDS = 32


def first_sentence(doc: str) -> str | None:
    """Returns the first sentence in plain words, None where it says nothing.

    Markup, signatures and the closing full stop are dropped; what is too
    short, too long, boilerplate or not prose gives None.

    >>> first_sentence("Return ``True`` if *x* is :class:`~a.Finite`. Or not.")
    'Return True if x is Finite'
    """
    text = _plain(_first_paragraph(doc))
    sentence = _END.split(text, maxsplit=1)[0].strip(" .,:;!?-_=")
    words = sentence.split()
    if not MIN_WORDS <= len(words) <= MAX_WORDS:
        return None
    if _BOILERPLATE.search(sentence) or not _is_prose(words):
        return None
    return sentence


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
    """`D.pop(k) -> v, remove the key` -> `remove the key`."""
    found = _SIGNATURE.match(doc)
    if not found:
        return doc
    line, _, rest = doc[found.end() :].partition("\n")
    text, results = _RESULT.subn("", line)
    is_prose = len(text.split()) >= MIN_WORDS and (results or not rest.strip())
    if is_prose:
        return f"{text}\n{rest}"
    return _without_signature(rest.strip(" \n-"))


def _plain(text: str) -> str:
    text = _ROLE.sub(lambda m: m[1].rsplit(".", 1)[-1].strip("()"), text)
    text = _LINK.sub(lambda m: m[1] or m[2], text)
    for noise in (_URL, _MARKUP, _QUOTES, _LABEL):
        text = noise.sub("", text)
    return " ".join(text.split())


def _is_prose(words: list[str]) -> bool:
    """Mostly words of ASCII letters, and not one line of code."""
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
