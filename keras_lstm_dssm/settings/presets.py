"""The recipes of all presets, by their names."""

from typing import Any

from keras_lstm_dssm.settings.recipes import (
    KeyVecRecipe,
    Recipe,
    ScorerRecipe,
)


def _towers(encoder: str, **config: Any) -> Recipe:
    return Recipe(encoder, config)


_BEST = Recipe(
    encoder="CombinedEncoder",
    document_encoder_config={"length_norm": 0.5},
    negatives="in_batch",
    gamma=16.0,
    learning_rate=0.03,
    epochs=12,
    batch_size=512,
    title_pairs=1,
    hard_negatives=1,
    patience=3,
)

PRESETS: dict[str, Recipe] = {
    "lstm_32": _towers("LSTMEncoder", cells=32),
    "lstm_64": _towers("LSTMEncoder", cells=64),
    "lstm_96": _towers("LSTMEncoder", cells=96),
    "lstm_96_full": _towers(
        "LSTMEncoder", cells=96, peephole="full", forget_gate=True
    ),
    "bilstm_96": _towers("BidirectionalLSTMEncoder", cells=96),
    "rnn_288": _towers("RNNEncoder", units=288),
    "dssm": _towers("DSSMEncoder", units=[288, 96]),
    "clsm_win1": _towers("CLSMEncoder", window=1),
    "clsm_win3": _towers("CLSMEncoder", window=3),
    "clsm_win5": _towers("CLSMEncoder", window=5),
    "best": _BEST,
    "best_words": _BEST.replace(
        encoder_config={"shares": [1.0, 1.0, 1.0, 1.0]}, teacher_weight=0.0
    ),
    # Fitted to a teacher's vectors, in no epoch.
    "word_sum": Recipe("WordSumEncoder", towers="tied", epochs=0),
}
"""Name -> recipe: the systems of the paper's Table IV with its sizes; `best`,
chosen on the dev splits of four data sets (docs/results/best.md), where it is
above BM25 on two, level on homedepot and below on wikiqa, whose clicks are
few; and `best_words` and `word_sum`, with words that are fitted to a teacher
(docs/results/few_clicks.md)."""


def _scorer(matcher: str, **config: Any) -> ScorerRecipe:
    return ScorerRecipe(matcher, config)


def _cntn(**config: Any) -> ScorerRecipe:
    # With a learning rate of 0.03 the first steps of Adagrad, which have about
    # this size for every weight, saturate the tanh units of CNTN for good.
    return ScorerRecipe("CNTN", config, learning_rate=0.003)


# Both interactions start near the cosine: M near the identity, and positions
# of length 1 (chosen on dev, see docs/results/mv_lstm).
_NEAR_COSINE: dict[str, Any] = {"rank": None, "unit_length": True}

SCORER_PRESETS: dict[str, ScorerRecipe] = {
    "mv_lstm_cosine": _scorer("MVLSTM", interaction="cosine"),
    "mv_lstm_bilinear": _scorer(
        "MVLSTM", interaction="bilinear", **_NEAR_COSINE
    ),
    "mv_lstm_tensor": _scorer("MVLSTM", interaction="tensor", **_NEAR_COSINE),
    "lstm_rnn_50": _scorer("RecurrentCosine"),
    "bilstm_rnn_50": _scorer("RecurrentCosine", bidirectional=True),
    "arc_i": _scorer("ARCI"),
    "arc_i_wan": _scorer(
        "ARCI",
        filters=[50, 50],
        activation="tanh",
        use_bias=False,
        pooling="k_max",
        hidden=[200],
    ),
    "arc_ii": _scorer("ARCII"),
    "arc_ii_wan": _scorer("ARCII", filters=[30], padding="wide", hidden=[60]),
    "cntn": _cntn(),
    "cntn_wan": _cntn(
        filters=[50, 50], use_bias=False, k_top=1, k_min=4, dimension=None
    ),
    "multi_gran_cnn": _scorer("MultiGranCNN"),
    "multi_gran_cnn_wan": _scorer(
        "MultiGranCNN",
        activation="relu",
        use_bias=False,
        similarity_activation="relu",
        sizes=[15],
        match_filters=[],
        hidden=[200],
    ),
    "deep_match": _scorer("DeepMatch"),
    "rae": _scorer("RAE"),
}
"""Name -> recipe: MV-LSTM and the models that Wan et al. 2016 compare it with.
A name that ends with `_wan` is the smaller form that they ran; without, that
of the model's own paper."""

_KEYVEC = KeyVecRecipe(
    normalize=True,
    excerpt=16,
    learning_rate=0.003,
    decay=True,
    skip_gram_epochs=20,
    key_word_start=3.0,
    epochs=80,
)

KEYVEC_PRESETS: dict[str, KeyVecRecipe] = {
    "keyvec": _KEYVEC,
    "keyvec_document": _KEYVEC.replace(key_words_of="document"),
    "keyvec_printed": KeyVecRecipe(patience=3),
    "keyvec_without_read": _KEYVEC.replace(read_weight=0.0),
    "keyvec_without_words": _KEYVEC.replace(word_weight=0.0),
    "keyvec_mean": _KEYVEC.replace(weighted=False),
}
"""Name -> recipe: KeyVec, learnt from excerpts; the same with key words of all
the text; KeyVec with the loss as printed, learnt from whole documents; and
what is left of `keyvec` without L_read, without L_enc, and with a p_i of 1
for all sentences."""
