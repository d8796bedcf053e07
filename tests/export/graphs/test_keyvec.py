"""Exported KeyVecs give the model's own vectors, key sentences and words."""

import asyncio
import functools
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import Documents, export_model, export_models
from keras_lstm_dssm.export.graphs.saved_module import predict_signatures
from keras_lstm_dssm.layers import TrigramVectors, unit
from keras_lstm_dssm.serving import (
    AsyncClient,
    Client,
    KeyParts,
    PredictionServer,
    SavedKeyVec,
)
from keras_lstm_dssm.serving.rest_api import RestApi
from keras_lstm_dssm.text import strings
from keras_lstm_dssm.text.strings import as_bytes
from tests.export.agreement import check_export
from tests.matchers.ragged_texts import randomise
from tests.models.small_keyvec import VOCABULARY, small_keyvec
from tests.precision import precision
from tests.serving.wire import predict_request

TEXTS = [
    "The hex bolt of steel. Glue. Wood! The drill of the lamp? Wood glue",
    *("", "Wood", b"\xff\xfe glue. \xc3 Wood.", "今天天气很好。glue！「wood」"),
    *("The hex bolt. " * 300, "glue wood " * 200, "nul\0bolt.\n\nA \x01lamp."),
    "Wood of the lamp. " * 5000,
]
IDS = [f"d{number}" for number in range(len(TEXTS))]
N = [3, 1, 9, 2, 0, 260, 4, 1, 5]


def trigram_keyvec() -> dssm.KeyVec:
    """Of letter trigrams, in float64, with a p of 1, without limits."""
    with precision("float64"):
        model = dssm.KeyVec(
            TrigramVectors(4, max_words=None), VOCABULARY, 3, [2], 3, 5,
            weighted=False, max_sentences=None,
        )  # fmt: skip
        randomise(model)
    return model


@pytest.fixture(scope="module")
def words() -> dssm.KeyVec:
    return small_keyvec()


@pytest.fixture(scope="module")
def models(words: dssm.KeyVec, tmp_path_factory) -> Path:
    """Folder of the exported models: a KeyVec, and a retriever of `TEXTS`."""
    folder = tmp_path_factory.mktemp("keyvec") / "models"
    found = export_models(words, folder, Documents(IDS, TEXTS))
    assert found == [folder / "keyvec" / "1", folder / "retriever" / "1"]
    return folder


def vectors_of(model: dssm.KeyVec) -> np.ndarray:
    vectors = unit(tf.constant(model.encode(TEXTS))).numpy()
    # NaN equals NaN in the comparisons with these vectors.
    assert np.isfinite(vectors).all()
    return vectors


@functools.cache
def key_parts_of(model: dssm.KeyVec, n: int) -> list[KeyParts]:
    return [
        KeyParts(
            model.key_sentences(text, n),
            [word for word, _ in model.key_words(text, n)],
        )
        for text in TEXTS
    ]


def check_key_parts(found: list[KeyParts], expected: list[KeyParts]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.words == other.words
        texts, probabilities = zip(*one.sentences, strict=True)
        other_texts, others = zip(*other.sentences, strict=True)
        assert texts == other_texts and np.isfinite(probabilities).all()
        np.testing.assert_allclose(probabilities, others, atol=1e-6)


def test_cpp_loader_finds_the_same_keys(words, models, tmp_path):
    """With the warm-up requests of both signatures, as a server runs them."""
    trigrams = trigram_keyvec()
    folders = models / "keyvec" / "1", export_model(trigrams, tmp_path)
    request = predict_request("x", text=as_bytes(TEXTS), n=np.int32(N))
    request.model_spec.signature_name = "keys"
    ones = np.ones(len(TEXTS), np.int32)
    retriever = predict_request("x", text=as_bytes(TEXTS), k=ones)
    outputs = check_export(
        *((folder, request) for folder in folders),
        (models / "retriever" / "1", retriever),
    )
    for model, output in zip((words, trigrams), outputs[:2], strict=True):
        check_outputs(model, output)
    assert outputs[2]["ids"][:, 0].tolist() == as_bytes(IDS)
    assert [*predict_signatures(folders[0])] == ["keys", "serving_default"]


def check_outputs(model: dssm.KeyVec, output: dict[str, np.ndarray]) -> None:
    """Each row has its own n, at most 250; the rest is "" and 0."""
    assert output["probabilities"].dtype == np.float32
    assert np.isfinite(output["probabilities"]).all()
    for row, (text, n) in enumerate(zip(TEXTS, N, strict=True)):
        n = min(n, 250)
        sentences = model.key_sentences(text, max(n, 1))[:n]
        key_words = model.key_words(text, max(n, 1))[:n]
        for name, expected, rest in (
            ("sentences", as_bytes(text for text, _ in sentences), b""),
            ("words", as_bytes(word for word, _ in key_words), b""),
            ("probabilities", [p for _, p in sentences], 0),
        ):
            values = output[name][row]
            assert values.shape == (250,)
            if name == "probabilities":
                start = values[: len(expected)]
                np.testing.assert_allclose(start, expected, atol=1e-6)
            else:
                assert values[: len(expected)].tolist() == expected
            assert (values[len(expected) :] == rest).all()


def test_in_process(words, models, monkeypatch):
    saved = SavedKeyVec(models / "keyvec")
    expected = vectors_of(words)
    assert np.ptp(expected, axis=0).min() > 1e-2
    np.testing.assert_allclose(saved.encode(TEXTS), expected, atol=1e-6)
    # A batch ends before it has two long documents.
    monkeypatch.setattr(strings, "_BATCH_BYTES", 2000)
    np.testing.assert_allclose(saved.encode(TEXTS), expected, atol=1e-6)
    for row in (0, 1, 5):
        alone = saved.encode([TEXTS[row]])
        np.testing.assert_allclose(alone, expected[row : row + 1], atol=1e-6)
    assert saved.encode([]).shape == (0, 5)
    check_key_parts(saved.keys(TEXTS, 2), key_parts_of(words, 2))
    assert saved.keys([]) == []
    for n in (0, 2**31):
        with pytest.raises(InputError, match=f"n is {n}; expected 1 or more"):
            saved.keys(TEXTS, n)
    with pytest.raises(InputError, match=r"are \['k', 'text'\]"):
        SavedKeyVec(models / "retriever")


def test_served_by_the_local_service(words, models):
    expected, parts = vectors_of(words), key_parts_of(words, 2)
    readme = (models / "README.md").read_text()
    with (
        PredictionServer(models, port=0) as server,
        Client(server.address, timeout=60) as client,
    ):
        vectors = client.encode(TEXTS, model="keyvec")
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
        check_key_parts(client.keys(TEXTS, n=2), parts)
        hits = client.search(TEXTS, k=2)
        with pytest.raises(InputError, match="n is 0; expected 1 or more"):
            client.keys(TEXTS, n=0)
        assert client.keys([]) == []
        check_rest_keys(server, TEXTS[0], parts[0])

        async def keys() -> list[KeyParts]:
            async with AsyncClient(server.address, timeout=60) as other:
                return await other.keys(TEXTS, n=2)

        check_key_parts(asyncio.run(keys()), parts)
        code = readme.split("```python\n")[1].split("```")[0]
        names: dict[str, object] = {}
        exec(code.replace("127.0.0.1:8500", server.address), names)
    assert names["parts"] == parts_of_readme(words)
    assert '{"signature_name": "keys", "inputs": {"text": ["Use' in readme
    cosines = expected @ expected.T
    for row, (first, second) in enumerate(hits):
        assert first.id == IDS[row]
        np.testing.assert_allclose(
            [first.score, second.score],
            np.sort(cosines[row])[:-3:-1],
            atol=1e-6,
        )


def check_rest_keys(
    server: PredictionServer, text: str, parts: KeyParts
) -> None:
    """Asks the REST API for two key sentences and words of a text."""
    inputs = {"text": [text], "n": [2]}
    body = json.dumps({"signature_name": "keys", "inputs": inputs}).encode()
    api = RestApi(server.models)
    code, reply = api.answer("POST", "/v1/models/keyvec:predict", body)
    assert code == 200, reply
    outputs = json.loads(reply)["outputs"]
    found = zip(
        outputs["sentences"][0], outputs["probabilities"][0], strict=True
    )
    assert list(found) == [
        (sentence, pytest.approx(p, abs=1e-6))
        for sentence, p in parts.sentences
    ]
    assert outputs["words"][0] == parts.words


def parts_of_readme(model: dssm.KeyVec) -> list[KeyParts]:
    """What the README's call of `Client.keys` returns."""
    text = "Use bolts. They hold."
    ((sentence, p),) = model.key_sentences(text, 1)
    word, _ = model.key_words(text, 1)[0]
    return [KeyParts([(sentence, pytest.approx(p, abs=1e-6))], [word])]


def test_a_retriever_is_that_of_one_training(words, models, tmp_path):
    before = sorted(models.rglob("*"))
    towers = dssm.TwoTower(dssm.RNNEncoder(3), dssm.RNNEncoder(3))
    documents = Documents(["a"], ["bolt"])
    with pytest.raises(InputError, match="found keyvec, of another training"):
        export_models(towers, models, documents)
    assert sorted(models.rglob("*")) == before
    (tmp_path / "query_encoder" / "1").mkdir(parents=True)
    with pytest.raises(InputError, match="found query_encoder, of another"):
        export_models(words, tmp_path, documents)


def test_weights_that_are_not_finite_are_refused(tmp_path):
    model = small_keyvec()
    model.word_scores.bias.assign(np.full(len(VOCABULARY), np.nan))
    with pytest.raises(InputError, match="word_scores/bias: .* not finite"):
        export_model(model, tmp_path)
    assert list(tmp_path.iterdir()) == []
