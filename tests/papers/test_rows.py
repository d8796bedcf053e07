"""The rows of the papers' tables, and what the papers have published."""

import json
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.data import DocumentFolder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import (
    KEYVEC_PRESETS,
    PRESETS,
    SCORER_PRESETS,
    build_model,
)
from keras_lstm_dssm.papers import PAPERS, keyvec, mv_lstm, table_iv
from keras_lstm_dssm.papers.neural_rows import _salience_agreement, _targets
from keras_lstm_dssm.papers.run_systems import choose_rows
from keras_lstm_dssm.training.document_targets import DocumentTargets
from keras_lstm_dssm.training.salience import SalienceCounts
from tests.papers.conftest import KEYVEC


def systems(paper: str) -> dict[str, Any]:
    return {name: row.system for name, row in PAPERS[paper].rows.items()}


def recipes(paper: str) -> dict[str, Any]:
    return {
        name: getattr(system, "recipe", None)
        for name, system in systems(paper).items()
    }


@pytest.mark.parametrize(("paper", "group", "names"), [
    ("table_iv", "baseline", "skip_thought"),
    ("table_iv", "feed-forward", "clsm_win5"),
    ("table_iv", "recurrent", "rnn_288 bilstm_96"),
    ("mv_lstm", "baseline", "document_order"),
    ("mv_lstm", "feed-forward", "arc_ii_wan rae"),
    ("mv_lstm", "recurrent", "mv_lstm_tensor lstm_rnn_50"),
    ("keyvec", "baseline", "lsa"),
    ("keyvec", "recurrent", "keyvec"),
])  # fmt: skip
def test_kinds(paper, group, names):
    for name in names.split():
        assert systems(paper)[name].group == group


def test_choice_of_rows():
    rows = PAPERS["table_iv"].rows
    assert choose_rows(rows, ["all"]) == rows
    assert list(choose_rows(rows, ["lstm_96", "random"])) == [
        "random", "lstm_96",
    ]  # fmt: skip
    with pytest.raises(InputError, match="found 'lstm', expected all, or some"):
        choose_rows(rows, ["bm25", "lstm"])


def test_rows_and_published_figures_of_table_iv():
    published, of_row = table_iv.PUBLISHED, recipes("table_iv")
    assert set(published) < set(of_row) and len(published) == 17
    best = max(published.values())
    assert best == published["bilstm_96"] == (33.2, 36.6, 43.6)
    for name in ("dssm", "clsm_win3", "lstm_96", "bilstm_96", "best"):
        assert of_row[name] is PRESETS[name]
    names = [f"lstm_96{suffix}" for suffix in ("_n2", "", "_n6", "_n8")]
    assert [of_row[name].n for name in names] == [2, 4, 6, 8]


def test_every_preset_is_a_row_of_mv_lstm():
    of_row = recipes("mv_lstm")
    for name, preset in SCORER_PRESETS.items():
        if name == "mv_lstm_cosine":
            preset = preset.with_matcher(k=5)
        assert of_row.pop(name) == preset
    for name in "random document_order bm25 skip_gram skip_gram_idf".split():
        assert of_row.pop(name) is None
    assert {name: row.matcher_config for name, row in of_row.items()} == {
        f"mv_lstm_cosine_k{k}": {"interaction": "cosine", "k": k}
        for k in (1, 3, 10)
    }
    for name in ("mv_lstm_bilinear", "mv_lstm_tensor"):
        matcher = build_model(name, vocabulary=["a"]).matcher
        assert (matcher.k, matcher.rank, matcher.unit_length) == (5, None, True)


def test_published_figures_of_mv_lstm_agree_with_the_papers_text():
    """The paper prints ratios of MV-LSTM tensor to others, in percent."""
    figures = mv_lstm.PUBLISHED
    precision = {name: of.precision for name, of in figures.items()}
    for name, percent in (("lstm_rnn_50", 11.1), ("multi_gran_cnn", 5.6)):
        ratio = 100 * (precision["mv_lstm_tensor"] / precision[name] - 1)
        assert ratio == pytest.approx(percent, abs=0.15)
    below = {n for n, value in precision.items() if value < precision["bm25"]}
    assert below == {"random", "rae", "deep_match"}
    confirmed = {name for name, of in figures.items() if of.confirmed}
    assert confirmed == {
        "random", "bm25", "arc_i", "arc_ii", "cntn", "lstm_rnn_50",
    }  # fmt: skip
    assert mv_lstm.published("arc_ii_wan") is figures["arc_ii"]
    assert mv_lstm.published("document_order") is None
    names = mv_lstm.TABLE_2_ROWS
    assert {*mv_lstm.POOLING_ROWS} < {*names} < {*mv_lstm.MV_LSTM_ROWS}
    of_table_2 = [precision[name] for name in names]
    assert of_table_2 == sorted(of_table_2)  # more k, more P@1


def test_rows_and_published_figures_of_keyvec():
    of_row = systems("keyvec")
    assert set(keyvec.PUBLISHED) < set(of_row)
    assert of_row["keyvec_lead"].salience == "lead"
    assert of_row["keyvec_lead"].recipe == of_row["keyvec"].recipe
    printed = of_row["keyvec_printed"]  # not with --epochs of the table
    assert printed.recipe == KEYVEC_PRESETS["keyvec_printed"]
    assert not printed.tuned and not printed.recipe.normalize
    # F1 is above ARI by about the chance level of F1 in every row.
    for figures in keyvec.PUBLISHED.values():
        f1, _, ari = figures.clustering
        assert 0.010 < f1 - ari < 0.017


def test_key_sentences_are_compared_with_p_and_with_their_order(tmp_path):
    pytest.importorskip("sklearn")
    texts = ["One two.", "Three four.", "Five six.", "Seven eight."]
    lines = [
        {"_id": number, "sentences": texts, "split": split, "summary": summary}
        for number, (split, summary) in enumerate(
            [("train", texts[1]), ("test", texts[2]), ("test", texts[0])]
        )
    ]
    lines.append({"_id": "none", "sentences": texts, "split": "test"})
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    model = build_model(KEYVEC, vocabulary=["five"])
    (p,) = model.probabilities([texts])
    ranks = np.argsort(np.argsort(-p, kind="stable"))[[2, 0]]
    # K = max(1, 4 // 4): the third sentence is key, and the first one.
    folder = DocumentFolder(tmp_path)
    targets = _targets(folder, "bm25", "summary")
    found = _salience_agreement(model, folder, targets)
    expected = {
        "precision": np.mean(ranks == 0),
        "average_precision": np.mean(1 / (1 + ranks)),
        "base_rate": 1 / 4,
        "order_average_precision": (1 / 3 + 1) / 2,
    }
    assert found == pytest.approx(
        {f"salience_{name}": value for name, value in expected.items()}
    )
    path.write_text(json.dumps({"_id": "a", "text": "A. B.", "split": "test"}))
    folder = DocumentFolder(tmp_path)  # key sentences need summaries
    targets = DocumentTargets({}, SalienceCounts(0.0))
    assert _salience_agreement(model, folder, targets) == {}
