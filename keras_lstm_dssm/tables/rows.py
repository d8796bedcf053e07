"""The rows of Table IV, in the paper's order, and those added to them."""

from typing import NamedTuple

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import PRESETS, Recipe


class Row(NamedTuple):
    """One system of the table.

    Attributes:
        label: Its name in the table.
        paper: NDCG@1, @3, @10 in the paper, in percent, on the paper's data.
        recipe: What two towers are made of and how they are trained; `None`
            for a baseline.
        tuned: Whether learning rate and gamma are chosen on dev, and epochs
            and batch size are the table's, so that all such rows are trained
            alike; `False` trains as the recipe says.
        seeded: Whether another seed gives another result.
    """

    label: str
    paper: tuple[float, float, float] | None = None
    recipe: Recipe | None = None
    tuned: bool = True
    seeded: bool = True

    @property
    def kind(self) -> str:
        """The group of the row in the charts."""
        if self.recipe is None:
            return "baseline"
        feed_forward = self.recipe.encoder in ("DSSMEncoder", "CLSMEncoder")
        return "feed-forward" if feed_forward else "recurrent"


_LSTM = PRESETS["lstm_96"]
_IN_BATCH = {"negatives": "in_batch"}
_PAPER = {
    "dssm": ("DSSM 288/96", (31.0, 34.4, 41.7)),
    "clsm_win1": ("CLSM 288/96, win=1", (31.8, 35.1, 42.6)),
    "clsm_win3": ("CLSM 288/96, win=3", (32.1, 35.2, 42.7)),
    "clsm_win5": ("CLSM 288/96, win=5", (32.0, 35.2, 42.6)),
    "rnn_288": ("RNN 288", (31.7, 35.0, 42.3)),
    "lstm_32": ("LSTM-RNN 32", (31.9, 35.5, 42.7)),
    "lstm_64": ("LSTM-RNN 64", (32.9, 36.3, 43.4)),
}

ROWS: dict[str, Row] = {
    "random": Row("Random order", seeded=False),
    "bm25": Row("BM25", (30.5, 32.8, 38.8), seeded=False),
    "ulm": Row("ULM, Dirichlet smoothing", (30.4, 32.7, 38.5), seeded=False),
    "plsa": Row("PLSA", (30.8, 33.7, 40.2)),
    "doc2vec": Row("Doc2Vec", (29.1, 31.8, 38.4)),
    "skip_thought": Row("Skip-Thought", (26.9, 29.7, 36.2)),
    **{
        name: Row(label, figures, PRESETS[name])
        for name, (label, figures) in _PAPER.items()
    },
    "lstm_96_n2": Row(
        "LSTM-RNN 96, n=2", (32.6, 36.0, 43.4), _LSTM.replace(n=2)
    ),
    "lstm_96": Row("LSTM-RNN 96, n=4", (33.1, 36.5, 43.6), _LSTM),
    "lstm_96_n6": Row(
        "LSTM-RNN 96, n=6", (33.1, 36.6, 43.6), _LSTM.replace(n=6)
    ),
    "lstm_96_n8": Row(
        "LSTM-RNN 96, n=8", (33.1, 36.4, 43.7), _LSTM.replace(n=8)
    ),
    "bilstm_96": Row(
        "Bi-LSTM-RNN 96", (33.2, 36.6, 43.6), PRESETS["bilstm_96"]
    ),
    "lstm_96_diagonal": Row(
        "LSTM-RNN 96, forget gate, diagonal peepholes",
        None,
        _LSTM.with_encoder(peephole="diagonal", forget_gate=True),
    ),
    "lstm_96_full": Row(
        "LSTM-RNN 96, forget gate, full peepholes",
        None,
        PRESETS["lstm_96_full"],
    ),
    "dssm_in_batch": Row(
        "DSSM 288/96, in-batch negatives",
        None,
        PRESETS["dssm"].replace(**_IN_BATCH),
    ),
    "clsm_win3_in_batch": Row(
        "CLSM 288/96, win=3, in-batch negatives",
        None,
        PRESETS["clsm_win3"].replace(**_IN_BATCH),
    ),
    "lstm_96_in_batch": Row(
        "LSTM-RNN 96, in-batch negatives", None, _LSTM.replace(**_IN_BATCH)
    ),
    "best": Row("Best (not of the paper)", None, PRESETS["best"], tuned=False),
}
"""Name -> row. Negatives are drawn at random, as in the paper, if not said."""


def choose_rows(names: list[str]) -> list[str]:
    """Returns the named systems, or all, in the table's order.

    Raises:
        InputError: There is no such system, or none is named.

    >>> choose_rows(["dssm", "bm25"])
    ['bm25', 'dssm']
    """
    if names == ["all"]:
        return list(ROWS)
    unknown = [name for name in names if name not in ROWS]
    if unknown or not names:
        raise InputError(
            f"--systems={','.join(names)}: found"
            f" {unknown[0] if unknown else 'no name'!r}, expected all, or some"
            f" of {', '.join(ROWS)}"
        )
    return [name for name in ROWS if name in names]
