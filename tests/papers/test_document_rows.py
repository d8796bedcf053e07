"""How a table measures the key sentences that a KeyVec finds in a document.

The sentences are ranked by the model's probabilities, and by their order.
"""

import json

import numpy as np
import pytest

from keras_lstm_dssm.data import DocumentFolder
from keras_lstm_dssm.models import KeyVecRecipe
from keras_lstm_dssm.papers.neural_rows import _salience_agreement, _targets
from keras_lstm_dssm.training.document_targets import DocumentTargets
from keras_lstm_dssm.training.salience import SalienceCounts

pytest.importorskip("sklearn")

TINY = KeyVecRecipe(
    word_dimension=4, min_count=1, filters=2, windows=(2,), units=2,
    dimension=4, skip_gram=False,
)  # fmt: skip


def test_key_sentences_are_compared_with_p_and_with_their_order(tmp_path):
    texts = ["One two.", "Three four.", "Five six.", "Seven eight."]
    lines = [
        {"_id": number, "sentences": texts, "split": split, "summary": summary}
        for number, (split, summary) in enumerate(
            [("train", texts[1]), ("test", texts[2]), ("test", texts[0])]
        )
    ]
    lines.append({"_id": "none", "sentences": texts, "split": "test"})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "documents.jsonl").write_text(text)
    folder, model = DocumentFolder(tmp_path), TINY.build(vocabulary=["five"])
    (p,) = model.probabilities([texts])
    ranks = np.argsort(np.argsort(-p, kind="stable"))[[2, 0]]
    # K = max(1, 4 // 4): the third sentence is key, and the first one.
    targets = _targets(folder, "bm25", "summary")
    assert _salience_agreement(model, folder, targets) == (
        pytest.approx(
            {
                "salience_precision": np.mean(ranks == 0),
                "salience_average_precision": np.mean(1 / (1 + ranks)),
                "salience_base_rate": 1 / 4,
                "salience_order_average_precision": (1 / 3 + 1) / 2,
            }
        )
    )


def test_key_sentences_need_summaries(tmp_path):
    line = {"_id": "a", "text": "One. Two.", "split": "test"}
    (tmp_path / "documents.jsonl").write_text(json.dumps(line))
    folder, model = DocumentFolder(tmp_path), TINY.build(vocabulary=["one"])
    targets = DocumentTargets({}, SalienceCounts(0.0))
    assert _salience_agreement(model, folder, targets) == {}
