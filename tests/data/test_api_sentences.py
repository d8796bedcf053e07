import pytest

from keras_lstm_dssm.data.api_prose import first_sentence, sentence_runs


@pytest.mark.parametrize(
    ("doc", "sentence"),
    [
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
    ],
)
def test_first_sentence(doc, sentence):
    assert first_sentence(doc) == sentence


@pytest.mark.parametrize(
    ("doc", "runs"),
    [
        ("", []),
        ("Sort all items. Do it now.", [["Sort all items", "Do it now"]]),
        (
            "Sort ``all`` items.\n\nIt is e.g. stable.",
            [["Sort all items", "It is e.g. stable"]],
        ),
        (
            "Sort all items.\n\n>>> sort(items)\n[1]\n\nIt is stable.",
            [["Sort all items"], ["It is stable"]],
        ),
        (
            "Sort all items.\nArgs:\n  items: What to sort.\nIt is stable.",
            [["Sort all items"], ["It is stable"]],
        ),
        (
            "Sort all items.\n\nParameters\n----------\nx : array_like\n"
            "    The one to sort.\n\nNotes\n-----\nIt is stable.",
            [["Sort all items"], ["It is stable"]],
        ),
        (
            "Sort all items.\n- first the small ones\n:param x: the items\n"
            "It is stable.",
            [["Sort all items"], ["It is stable"]],
        ),
        (
            "Sort all items. See base class. It is stable.",
            [["Sort all items"], ["It is stable"]],
        ),
    ],
)
def test_sentence_runs(doc, runs):
    assert list(sentence_runs(doc)) == runs
