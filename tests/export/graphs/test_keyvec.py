"""Exported KeyVecs: key sentences and words in this process and by servers."""

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm import serving
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import Documents, export_models
from keras_lstm_dssm.layers import unit
from keras_lstm_dssm.text import many_texts
from tests.client.conftest import run
from tests.export.graphs.kinds import LONG_IDS, LONG_TEXTS, Exported


@pytest.fixture
def keyvec(exported) -> Exported:
    return exported("keyvec")


def key_parts(model: dssm.KeyVec, text: str, n: int) -> serving.KeyParts:
    return serving.KeyParts(
        [(each, pytest.approx(p, abs=1e-6))
         for each, p in model.key_sentences(text, n)],
        [word for word, _ in model.key_words(text, n)],
    )  # fmt: skip


def test_in_process(keyvec, monkeypatch):
    model, folder, _ = keyvec
    saved = serving.SavedKeyVec(folder / "keyvec")
    expected = unit(model.encode(LONG_TEXTS)).numpy()
    np.testing.assert_allclose(saved.encode(LONG_TEXTS), expected, atol=1e-6)
    # A batch ends before it has two long documents.
    monkeypatch.setattr(many_texts, "_BATCH_BYTES", 2000)
    np.testing.assert_allclose(saved.encode(LONG_TEXTS), expected, atol=1e-6)
    assert saved.encode([]).shape == (0, 5)
    assert saved.keys(LONG_TEXTS, 2) == [
        key_parts(model, text, 2) for text in LONG_TEXTS
    ]
    assert saved.keys([]) == []
    for n in (0, 2**31):
        with pytest.raises(InputError, match=f"n is {n}; expected a whole"):
            saved.keys(LONG_TEXTS, n)
    with pytest.raises(InputError, match=r"are \['k', 'text'\]"):
        serving.SavedKeyVec(folder / "retriever")


def test_served_by_the_local_service(keyvec):
    """To all clients, and to the Python of the README."""
    model, folder, _ = keyvec
    expected = unit(model.encode(LONG_TEXTS)).numpy()
    parts = [key_parts(model, text, 2) for text in LONG_TEXTS]
    with (
        serving.PredictionServer(folder, port=0, http_port=0) as server,
        serving.Client(server.address, timeout=60) as client,
        serving.HttpClient(server.http_address, timeout=60) as http_client,
    ):
        vectors = client.encode(LONG_TEXTS, model="keyvec")
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
        assert run(client, lambda c: c.keys(LONG_TEXTS, n=2)) == parts
        for each in (client, http_client):
            assert each.keys(LONG_TEXTS, n=2) == parts
            assert each.keys([]) == []
            with pytest.raises(InputError, match="n is 0; expected a whole"):
                each.keys(LONG_TEXTS, n=0)
        hits = client.search(LONG_TEXTS, k=2)
        readme = (folder / "README.md").read_text()
        code = readme.split("```python\n")[1].split("```")[0]
        names: dict[str, object] = {}
        exec(code.replace("127.0.0.1:8500", server.address), names)
    assert names["parts"] == [key_parts(model, "Use bolts. They hold.", 1)]
    assert '{"signature_name": "keys", "inputs": {"text": ["Use' in readme
    best = np.sort(expected @ expected.T)[:, :-3:-1]
    scores = [[hit.score for hit in row] for row in hits]
    np.testing.assert_allclose(scores, best, atol=1e-6)
    assert [row[0].id for row in hits] == LONG_IDS


def test_a_retriever_is_that_of_one_training(keyvec, tmp_path):
    before = sorted(keyvec.folder.rglob("*"))
    towers = dssm.TwoTower(dssm.RNNEncoder(3), dssm.RNNEncoder(3))
    documents = Documents(["a"], ["bolt"])
    with pytest.raises(InputError, match="found keyvec of another training"):
        export_models(towers, keyvec.folder, documents)
    assert sorted(keyvec.folder.rglob("*")) == before
    (tmp_path / "query_encoder" / "1").mkdir(parents=True)
    with pytest.raises(InputError, match="found query_encoder of another"):
        export_models(keyvec.model, tmp_path, documents)
