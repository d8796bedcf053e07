"""The rows of Tables 2, 3 and 5 of Wan et al. 2016, and further rows."""

from typing import NamedTuple

from keras_lstm_dssm.models import SCORER_PRESETS
from keras_lstm_dssm.tables.rows import Row


def _row(label: str, name: str) -> Row:
    return Row(label, recipe=SCORER_PRESETS[name])


def _mv_lstm(k: int) -> Row:
    recipe = SCORER_PRESETS["mv_lstm_cosine"].with_matcher(k=k)
    return Row(f"MV-LSTM cosine, k = {k}", recipe=recipe)


MV_LSTM_ROWS: dict[str, Row] = {
    "random": Row("Random order", seeded=False),
    "document_order": Row("Document order", seeded=False),
    "bm25": Row("BM25", seeded=False),
    "skip_gram": Row("Sum of skip-gram vectors, untrained"),
    "skip_gram_idf": Row("Sum weighted by IDF, untrained"),
    "arc_i": _row("ARC-I", "arc_i"),
    "arc_i_wan": _row("ARC-I, small", "arc_i_wan"),
    "cntn": _row("CNTN", "cntn"),
    "cntn_wan": _row("CNTN, small", "cntn_wan"),
    "lstm_rnn_50": _row("LSTM-RNN 50", "lstm_rnn_50"),
    "bilstm_rnn_50": _row("Bi-LSTM-RNN 50", "bilstm_rnn_50"),
    "rae": _row("RAE", "rae"),
    "deep_match": _row("DeepMatch", "deep_match"),
    "arc_ii": _row("ARC-II", "arc_ii"),
    "arc_ii_wan": _row("ARC-II, small", "arc_ii_wan"),
    "multi_gran_cnn": _row("MultiGranCNN", "multi_gran_cnn"),
    "multi_gran_cnn_wan": _row("MultiGranCNN, small", "multi_gran_cnn_wan"),
    "mv_lstm_cosine_k1": _mv_lstm(1),
    "mv_lstm_cosine_k3": _mv_lstm(3),
    "mv_lstm_cosine": _mv_lstm(5),
    "mv_lstm_cosine_k10": _mv_lstm(10),
    "mv_lstm_bilinear": _row("MV-LSTM bilinear, k = 5", "mv_lstm_bilinear"),
    "mv_lstm_tensor": _row("MV-LSTM tensor, k = 5", "mv_lstm_tensor"),
}
"""Name -> row, in the paper's order. Rows that are called small have the form
of the model that Wan et al. ran; the others that of the model's own paper."""

POOLING_ROWS = ("mv_lstm_cosine_k1", "mv_lstm_cosine_k3", "mv_lstm_cosine_k10")
"""The rows of Table 2 that are not in Tables 3 and 5."""

TABLE_2_ROWS = (
    "lstm_rnn_50", "bilstm_rnn_50", "mv_lstm_cosine_k1", "mv_lstm_cosine_k3",
    "mv_lstm_cosine", "mv_lstm_cosine_k10",
)  # fmt: skip


class Published(NamedTuple):
    """Figures of Wan et al. 2016, from 0 to 1, on the paper's data.

    Attributes:
        precision: P@1 on question answering (Tables 2 and 3).
        reciprocal: MRR there.
        confirmed: Whether another publication prints the same two figures.
        completion: P@1 on sentence completion (Table 5), where another
            publication prints it, too; else `None`.
    """

    precision: float
    reciprocal: float
    confirmed: bool = False
    completion: float | None = None


PUBLISHED: dict[str, Published] = {
    "random": Published(0.200, 0.457, True, 0.200),
    "bm25": Published(0.579, 0.726, True),
    "arc_i": Published(0.581, 0.756, True, 0.475),
    "cntn": Published(0.626, 0.781, True),
    "lstm_rnn_50": Published(0.690, 0.822, True),
    "bilstm_rnn_50": Published(0.702, 0.830),
    "rae": Published(0.398, 0.652, False, 0.258),
    "deep_match": Published(0.452, 0.679, False, 0.325),
    "arc_ii": Published(0.591, 0.765, True, 0.496),
    "multi_gran_cnn": Published(0.725, 0.840),
    "mv_lstm_cosine_k1": Published(0.726, 0.843),
    "mv_lstm_cosine_k3": Published(0.736, 0.849),
    "mv_lstm_cosine": Published(0.739, 0.852),
    "mv_lstm_cosine_k10": Published(0.740, 0.852),
    "mv_lstm_bilinear": Published(0.751, 0.860),
    "mv_lstm_tensor": Published(0.766, 0.869),
}
"""Name -> published figures; a small form has those of its model."""


def published(name: str) -> Published | None:
    """Returns the published figures of a row, or `None` without any."""
    return PUBLISHED.get(name.removesuffix("_wan"))
