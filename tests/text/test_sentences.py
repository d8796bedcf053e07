"""Python and the graph split a text into the same sentences."""

import random
import time
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import split_sentences
from keras_lstm_dssm.text.sentences import graph_sentences

RULE = {
    "": [""],
    " \n\n \x01": [""],
    "one": ["one"],
    "Sorts it. Fast!  Really?\tYes…  So": [
        "Sorts it.", "Fast!", "Really?", "Yes…", "So",
    ],
    "It is, e.g. Fast. By J. Smith et al. In Fig. A, see.": [
        "It is, e.g. Fast.", "By J. Smith et al. In Fig. A, see.",
    ],
    "In 2. 3 of them. it goes on . Ümlaut. über. Да. нет.": [
        "In 2. 3 of them. it goes on .", "Ümlaut. über.", "Да. нет.",
    ],
    'He said "Stop." "Go!" (We went.) [So.] `x`.': [
        'He said "Stop."', '"Go!"', "(We went.)", "[So.]", "`x`.",
    ],
    "A title\n\nand \n more\r\n \r\nend\u2029here": [
        "A title", "and more", "end", "here",
    ],
    "今天。明天！「好。」再见": ["今天。", "明天！", "「好。」", "再见"],
    "1.5 and a.b.C are one...": ["1.5 and a.b.C are one..."],
    "a\x01b\x02.\x00": ["a b .\x00"],
    b"\xff. A\xc3": ["\ufffd.", "A\ufffd"],
    "\udcff. B": ["\ufffd.", "B"],  # bytes of a command line
}  # fmt: skip
PIECES = (
    *".!?…。！」\"')` \n\n\r\t\v\x00\x01\x02\x85\xa0\u2028\u2029\u3000",
    *"aZ0ßÉéЖж上\u00ad\ufffd\U0001f600", "e.g.", "al.", "Fig.", ". A", " b",
)  # fmt: skip


def in_graph(texts: list[Any], *options: Any) -> list[list[str]]:
    found = graph_sentences(tf.constant(texts), *options).to_list()
    return [[sentence.decode() for sentence in row] for row in found]


def texts() -> list[bytes]:
    """Docstrings, random text and random bytes."""
    documents = [
        getattr(module, name).__doc__
        for module in (keras.layers, np, tf)
        for name in dir(module)
    ]
    chosen = [doc.encode() for doc in documents if isinstance(doc, str)]
    choice = random.Random(0)
    for _ in range(3000):
        size = choice.randrange(40)
        chosen.append("".join(choice.choices(PIECES, k=size)).encode())
        chosen.append(choice.randbytes(size))
        points = [choice.randrange(0xD800) for _ in range(size)]
        chosen.append("".join(map(chr, points)).encode())
    return chosen


@pytest.mark.parametrize("text", RULE, ids=repr)
def test_rule(text):
    assert split_sentences(text) == RULE[text]


@pytest.mark.parametrize("options", [(), (3,)])
def test_python_and_graph_agree(options):
    documents = texts()
    expected = [split_sentences(text, *options) for text in documents]
    assert in_graph(documents, *options) == expected
    assert max(map(len, expected)) > 50
    longest = max(len(s.split(" ")) for found in expected for s in found)
    assert longest == (options[0] if options else 60)


def test_no_word_is_lost():
    for text in texts()[:500]:
        document = text.decode().replace("\x01", " ").replace("\x02", " ")
        sentences = split_sentences(text, 5)
        assert "".join("".join(sentences).split()) == "".join(document.split())


def test_a_text_without_an_end_is_cut():
    text = " ".join(["word"] * 125)
    assert [len(s.split()) for s in split_sentences(text)] == [60, 60, 5]
    assert split_sentences(text) == in_graph([text])[0]


@pytest.mark.parametrize(("piece", "sentences"), [
    (" ", 1), ("\t\n ", 1), ("a", 1), ("a.", 1), (".\"", 1), ("上", 1),
    ("。", 100_000), ("A. ", 1667), ("a\n", 1667), (".\x01 ", 1667),
])  # fmt: skip
def test_time_is_linear(piece, sentences):
    """100,000 copies take below a second; in quadratic time, minutes."""
    text = piece * 100_000
    start = time.process_time()
    found = split_sentences(text)
    assert time.process_time() - start < 20
    assert len(found) == sentences
    assert found == in_graph([text])[0]


def test_wrong_input_is_explained():
    with pytest.raises(InputError, match="text 0 is None"):
        split_sentences(None)  # type: ignore[arg-type]
    for number in (1, 501):
        with pytest.raises(InputError, match=f"from 2 to 500, not {number}"):
            split_sentences("a", number)
        with pytest.raises(InputError, match=f"from 2 to 500, not {number}"):
            graph_sentences(tf.constant(["a"]), number)
    assert len(split_sentences("a " * 1000, 500)) == 2
    assert graph_sentences(tf.constant(["a " * 1000]), 500).shape[0] == 1
