"""The rows of Tables 1 and 2 of Bi and Ma 2017, and further rows."""

from typing import NamedTuple

from keras_lstm_dssm.models import KEYVEC_PRESETS
from keras_lstm_dssm.tables.rows import Row


def _row(label: str, name: str) -> Row:
    return Row(label, recipe=KEYVEC_PRESETS[name])


KEYVEC_ROWS: dict[str, Row] = {
    "random": Row("Random order, random clusters", seeded=False),
    "random_vectors": Row("Random vectors"),
    "bm25": Row("BM25", seeded=False, vectors=False),
    "tfidf": Row("TF-IDF", seeded=False),
    "lsa": Row("TF-IDF, SVD 100"),
    "word2vec": Row("Averaged word2vec, own corpus"),
    "doc2vec": Row("Paragraph Vector"),
    "keyvec_untrained": _row("KeyVec, untrained", "keyvec")._replace(
        trained=False
    ),
    "keyvec_without_read": _row("KeyVec without L_read", "keyvec_without_read"),
    "keyvec_without_words": _row(
        "KeyVec without L_enc", "keyvec_without_words"
    ),
    "keyvec_mean": _row("KeyVec with p = 1", "keyvec_mean"),
    "keyvec_lead": _row(
        "KeyVec, first sentences as key sentences", "keyvec"
    )._replace(salience="lead"),
    "keyvec_printed": _row(
        "KeyVec, loss as printed, whole documents", "keyvec_printed"
    )._replace(tuned=False),
    "keyvec": _row("KeyVec", "keyvec"),
    "keyvec_document": _row(
        "KeyVec, key words of all the text", "keyvec_document"
    ),
    "keyvec_document_without_read": Row(
        "KeyVec, key words of all the text, without L_read",
        recipe=KEYVEC_PRESETS["keyvec_document"].replace(read_weight=0.0),
    ),
}
"""Name -> row: baselines, ablations of KeyVec, and KeyVec itself."""


class Published(NamedTuple):
    """Figures of Bi and Ma 2017, from 0 to 1, on the paper's data.

    Attributes:
        retrieval: P@10, MAP and MRR of Table 1.
        clustering: F1, V-measure and adjusted Rand index of Table 2.
    """

    retrieval: tuple[float, float, float]
    clustering: tuple[float, float, float]


PUBLISHED: dict[str, Published] = {
    "word2vec": Published((0.223, 0.193, 0.546), (0.079, 0.548, 0.066)),
    "doc2vec": Published((0.227, 0.177, 0.495), (0.083, 0.553, 0.070)),
    "keyvec": Published((0.279, 0.232, 0.619), (0.090, 0.597, 0.079)),
}
"""Name -> published figures. The paper's row of public 300-wide word2vec
vectors (P@10 .221, F1 .019) is left out, as these need a download."""
