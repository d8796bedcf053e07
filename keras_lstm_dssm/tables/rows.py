"""The rows of Table IV, in the paper's order, and those added to them."""

from typing import Any, NamedTuple

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.presets import RECIPES


class Row(NamedTuple):
    """One system.

    Attributes:
        label: Its name in the table.
        paper: NDCG@1, @3, @10 in the paper, in percent, on its own data.
        preset: For towers, a name in `PRESETS`.
        encoder: Arguments that override the preset's.
        negatives: See `TwoTower`.
        n: See `TwoTower`.
        recipe: How it is trained where that is not chosen on dev: see
            `RECIPES`.
        seeded: Whether another seed gives another result.
    """

    label: str
    paper: tuple[float, float, float] | None = None
    preset: str | None = None
    encoder: dict[str, Any] = {}
    negatives: str = "random"
    n: int = 4
    recipe: dict[str, Any] = {}
    seeded: bool = True

    @property
    def kind(self) -> str:
        """What the charts group by."""
        if self.preset is None:
            return "baseline"
        recurrent = any(name in self.preset for name in ("lstm", "rnn", "best"))
        return "recurrent" if recurrent else "feed-forward"


_DIAGONAL = {"peephole": "diagonal", "forget_gate": True}

ROWS: dict[str, Row] = {
    "random": Row("Random order", seeded=False),
    "bm25": Row("BM25", (30.5, 32.8, 38.8), seeded=False),
    "ulm": Row("ULM, Dirichlet smoothing", (30.4, 32.7, 38.5), seeded=False),
    "plsa": Row("PLSA", (30.8, 33.7, 40.2)),
    "doc2vec": Row("Doc2Vec", (29.1, 31.8, 38.4)),
    "skip_thought": Row("Skip-Thought", (26.9, 29.7, 36.2)),
    "dssm": Row("DSSM 288/96", (31.0, 34.4, 41.7), "dssm"),
    "clsm_win1": Row("CLSM 288/96, win=1", (31.8, 35.1, 42.6), "clsm_win1"),
    "clsm_win3": Row("CLSM 288/96, win=3", (32.1, 35.2, 42.7), "clsm_win3"),
    "clsm_win5": Row("CLSM 288/96, win=5", (32.0, 35.2, 42.6), "clsm_win5"),
    "rnn_288": Row("RNN 288", (31.7, 35.0, 42.3), "rnn_288"),
    "lstm_32": Row("LSTM-RNN 32", (31.9, 35.5, 42.7), "lstm_32"),
    "lstm_64": Row("LSTM-RNN 64", (32.9, 36.3, 43.4), "lstm_64"),
    "lstm_96_n2": Row("LSTM-RNN 96, n=2", (32.6, 36.0, 43.4), "lstm_96", n=2),
    "lstm_96": Row("LSTM-RNN 96, n=4", (33.1, 36.5, 43.6), "lstm_96"),
    "lstm_96_n6": Row("LSTM-RNN 96, n=6", (33.1, 36.6, 43.6), "lstm_96", n=6),
    "lstm_96_n8": Row("LSTM-RNN 96, n=8", (33.1, 36.4, 43.7), "lstm_96", n=8),
    "bilstm_96": Row("Bi-LSTM-RNN 96", (33.2, 36.6, 43.6), "bilstm_96"),
    "lstm_96_diagonal": Row(
        "LSTM-RNN 96, forget gate, diagonal peepholes",
        None, "lstm_96", _DIAGONAL,
    ),
    "lstm_96_full": Row(
        "LSTM-RNN 96, forget gate, full peepholes", None, "lstm_96_full"
    ),
    "dssm_in_batch": Row(
        "DSSM 288/96, in-batch negatives", None, "dssm", negatives="in_batch"
    ),
    "clsm_win3_in_batch": Row(
        "CLSM 288/96, win=3, in-batch negatives",
        None, "clsm_win3", negatives="in_batch",
    ),
    "lstm_96_in_batch": Row(
        "LSTM-RNN 96, in-batch negatives",
        None, "lstm_96", negatives="in_batch",
    ),
    "best": Row(
        "Best (not of the paper)",
        None, "best", negatives="in_batch", recipe=RECIPES["best"],
    ),
}  # fmt: skip
"""Name -> row. The first negatives are the paper's, drawn at random."""


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
