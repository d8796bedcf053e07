"""Sentences of docstrings with descriptions of arguments."""

import inspect

import pytest

from keras_lstm_dssm.data.api_prose import prose_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            """\
            Args:
                a: The list to sort. It stays
                  as it is here.
                **others (optional): Are not read at all.
            """,
            [
                "The list to sort.",
                "It stays as it is here.",
                "Are not read at all.",
            ],
        ),
        (
            """\
            Parameters
            ----------
            key : callable, optional
                The function to use.
                It has one argument.
            axis, other : int
                The axis to sort along.
            """,
            [
                "The function to use.",
                "It has one argument.",
                "The axis to sort along.",
            ],
        ),
        (
            """\
            * One item which goes
              on in the next line.
            * Two items are there.
            1. Three items are there.
            """,
            [
                "One item which goes on in the next line.",
                "Two items are there.",
                "Three items are there.",
            ],
        ),
        (
            """\
            Before the code here.

            >>> sort_them_all_now()
            this is the output here

            ```
            not this one here
            ```
            After the `code` here.
                An indented line here.
            """,
            [
                "Before the code here.",
                "After the code here.",
                "An indented line here.",
            ],
        ),
        ("", []),
    ],
)
def test_what_is_read(text, sentences):
    assert prose_sentences(inspect.cleandoc(text)) == sentences
