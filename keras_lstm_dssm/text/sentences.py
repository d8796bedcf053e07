"""Splits documents into sentences, with equal results in Python and graphs."""

import re

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from lstm_dssm_client.signatures import as_bytes

MAX_SENTENCE_WORDS = 60
"""Default number of words after which a longer sentence is cut."""

# Characters of white space, without line feeds and the paragraph separator.
_SPACE = "\t\v\f\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000"
# _END marks the end of a sentence. _STOP replaces an abbreviation's full stop.
_END, _STOP = "\x01", "\x02"
_ABBREVIATIONS = (
    r"e\.g|i\.e|a\.k\.a|w\.r\.t|al|approx|cf|ca|resp|vs|[Ff]igs?|[Ee]qs?"
    r"|[Ss]ecs?|[Tt]ab|Dr|Mrs?|Ms|Prof|St|[A-Z]"
)
_CLOSING = "\"'\u201d\u2019\u00bb)\\]`*"
# Characters that cannot begin a sentence.
_INSIDE = "a-z0-9\u00df-\u00f6\u00f8-\u00ff\u03ac-\u03ce\u0430-\u045f,;:.!?)"

# The patterns have no look-around, because RE2 has none, and no classes such as
# \s, which differ between RE2 and `re`. The first step leaves single spaces: on
# long runs of spaces, `re` would need more than linear time.
_STEPS = (
    (f"[{_END}{_STOP}{_SPACE}]+", " "),
    # An empty line, or a paragraph separator.
    (" ?(?:\n ?\n|\u2029)[\n\u2029 ]*", _END),
    (" ?\n ?", " "),
    (rf"\b({_ABBREVIATIONS})\.", rf"\1{_STOP}"),
    (f"([.!?\u2026][{_CLOSING}]*) ([^{_INSIDE}])", rf"\1{_END}\2"),
    # Chinese and Japanese sentences have no space between them.
    ("([\u3002\uff01\uff1f\uff61][\u300d\u300f\u201d\u2019\uff09]*)",
     rf"\1{_END}"),
    (_STOP, "."),
    (f" ?{_END}[ {_END}]*", _END),
    (f"^[ {_END}]+|[ {_END}]+$", ""),
)  # fmt: skip


def split_sentences(
    text: str | bytes, max_words: int = MAX_SENTENCE_WORDS
) -> list[str]:
    r"""Splits a document into its sentences.

    A sentence ends before an empty line, and after `。`, `！` or `？`. It also
    ends after `.`, `!`, `?` or `…` and white space, unless a lower-case letter,
    a digit or one of `,;:.!?)` comes next. Abbreviations such as `e.g.` and
    initials do not end a sentence. A sentence with more than `max_words` words
    is divided. White space within a sentence becomes a single space. Invalid
    UTF-8 becomes U+FFFD.

    Args:
        text: The document, `str` or `bytes`.
        max_words: Largest number of words (separated by white space) of a
            sentence. Default 60.

    Returns:
        At least one sentence; an empty document has one empty sentence.

    Raises:
        InputError: `text` has another type, or `max_words` is not 2 to 500.

    Example:
    >>> split_sentences("Sorts a list, e.g. a. It is\nstable. Use it!")
    ['Sorts a list, e.g. a.', 'It is stable.', 'Use it!']
    """
    _check(max_words)
    document = as_bytes([text])[0].decode("utf-8", "replace")
    for pattern, replacement in _STEPS:
        document = re.sub(pattern, replacement, document, flags=re.ASCII)
    sentences: list[str] = []
    for sentence in document.split(_END):
        words = sentence.split(" ")
        starts = range(0, len(words), max_words)
        sentences += (" ".join(words[i : i + max_words]) for i in starts)
    return sentences


def graph_sentences(
    texts: tf.Tensor, max_words: int = MAX_SENTENCE_WORDS
) -> tf.RaggedTensor:
    """Splits documents `[batch]` as `split_sentences` does, in a graph.

    Returns `[batch, (sentences)]`, with at least one sentence in each row.
    """
    _check(max_words)
    documents = tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace"
    )
    word = f"[^ {_END}]+"
    cut = (f"((?:{word} ){{{max_words - 1}}}{word}) ", rf"\1{_END}")
    for pattern, replacement in (*_STEPS, cut):
        documents = tf.strings.regex_replace(documents, pattern, replacement)
    return tf.strings.split(documents, _END)


def _check(max_words: int) -> None:
    if not 2 <= max_words <= 500:  # RE2 limits repetitions in a pattern
        raise InputError(f"max_words must be from 2 to 500, not {max_words}")
