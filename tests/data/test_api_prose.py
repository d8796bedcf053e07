"""Sentences of docstrings, with descriptions of arguments or without."""

import inspect

import pytest

from keras_lstm_dssm.data.api_sources import (
    first_sentence,
    prose_sentences,
    sentence_runs,
)

PROSE = [
    ("""\
     Args:
         a: The list to sort. It stays
           as it is here.
         **others (optional): Are not read at all.
     """,
     ["The list to sort.", "It stays as it is here.", "Are not read at all."]),
    ("""\
     Parameters
     ----------
     key : callable, optional
         The function to use.
         It has one argument.
     axis, other : int
         The axis to sort along.
     """,
     ["The function to use.", "It has one argument.",
      "The axis to sort along."]),
    ("""\
     * One item which goes
       on in the next line.
     * Two items are there.
     1. Three items are there.
     """,
     ["One item which goes on in the next line.", "Two items are there.",
      "Three items are there."]),
    ("""\
     Before the code here.

     >>> sort_them_all_now()
     this is the output here

     ```
     not this one here
     ```
     After the `code` here.
         An indented line here.
     """,
     ["Before the code here.", "After the code here.",
      "An indented line here."]),
    ("", []),
]  # fmt: skip
FIRST = [
    ("Read a\n  file. Then close it.", "Read a file"),
    ("Say ``x``, `y` and :func:`~a.b.c`.", "Say x, y and c"),
    ("Use e.g. this one. Not that.", "Use e.g. this one"),
    ("D.pop(k[,d]) -> v, remove the key.", "remove the key"),
    ("f(a, (b))\n--\n\nDo the work.", "Do the work"),
    ("Write the 'rows' now:\n\n>>> f()", "Write the rows now"),
    ("Open the [file](x.html) there\nArgs:\n  a: b", "Open the file there"),
    ("TODO: write this down", None),
    ("See base class.", None),
    ("Too short.", None),
    ("Deprecated, use other things.", None),
    ("a = b + c * d / (e - f)", None),
    ("\u00dcber die Br\u00fccke gehen", None),
    ("", None),
]  # fmt: skip
APART = [["Sort all items"], ["It is stable"]]
RUNS = [
    ("", []),
    ("Sort all items. Do it now.", [["Sort all items", "Do it now"]]),
    ("Sort ``all`` items.\n\nIt is e.g. stable.",
     [["Sort all items", "It is e.g. stable"]]),
    ("Sort all items.\n\n>>> sort(items)\n[1]\n\nIt is stable.", APART),
    ("Sort all items.\nArgs:\n  items: What to sort.\nIt is stable.", APART),
    ("Sort all items.\n\nParameters\n----------\nx : array_like\n"
     "    The one to sort.\n\nNotes\n-----\nIt is stable.", APART),
    ("Sort all items.\n- first the small ones\n:param x: the items\n"
     "It is stable.", APART),
    ("Sort all items. See base class. It is stable.", APART),
]  # fmt: skip


@pytest.mark.parametrize(("text", "sentences"), PROSE)
def test_prose_sentences(text, sentences):
    assert prose_sentences(inspect.cleandoc(text)) == sentences


@pytest.mark.parametrize(("doc", "sentence"), FIRST)
def test_first_sentence(doc, sentence):
    assert first_sentence(doc) == sentence


@pytest.mark.parametrize(("doc", "runs"), RUNS)
def test_sentence_runs(doc, runs):
    assert list(sentence_runs(doc)) == runs
