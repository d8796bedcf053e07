"""An export of each kind of model, and what the model itself gives.

`exported(kind)` of `conftest.py` makes each of them once a process.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tensorflow_serving.apis.predict_pb2 import PredictRequest

import keras_lstm_dssm as dssm
from keras_lstm_dssm import export
from keras_lstm_dssm.evaluate.hybrid import HybridSystem
from keras_lstm_dssm.export.graphs.retriever import int8_codes
from keras_lstm_dssm.layers import TrigramVectors, unit
from keras_lstm_dssm.models.word_builders import build_scorer
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from lstm_dssm_client.signatures import as_bytes
from tests.encoders.small import small_encoder
from tests.matchers.ragged_texts import randomise
from tests.matchers.small_matchers import SMALL_MATCHERS
from tests.models.small_keyvec import VOCABULARY, small_keyvec
from tests.precision import precision
from tests.serving.wire import predict_request


class Case(NamedTuple):
    """A request for a version, and outputs that its model gives by itself."""

    version: Path
    request: PredictRequest
    expected: dict[str, np.ndarray]
    atol: float = 1e-6


class Exported(NamedTuple):
    """A model, the folder of what was exported of it, and its cases."""

    model: Any
    folder: Path
    cases: list[Case]


def request(signature: str = "", **inputs: object) -> PredictRequest:
    """A request with texts, and with numbers as int32."""
    arrays = {
        name: np.int32(values) if name in ("k", "n") else as_bytes(values)
        for name, values in inputs.items()
    }
    made = predict_request("any", **arrays)
    made.model_spec.signature_name = signature
    return made


ENCODED = [
    "hotels in shanghai", "", "  \u3000 ", "a", b"\xff\xfe broken",
    "nul\x00inside", "smile \U0001f600", "上海 酒店", "فنادق شنغهاي",
    "word " * 10_000,
]  # fmt: skip


def encoder(folder: Path) -> Exported:
    """Encoders of all kinds, one of them in float64."""
    encoders = [
        dssm.RNNEncoder(6, dtype="float64"),
        dssm.LSTMEncoder(
            4, peephole="full", forget_gate=True, truncate=3, oov_buckets=64
        ),
        dssm.BidirectionalLSTMEncoder(4, peephole="diagonal"),
        dssm.DSSMEncoder([6, 4]),
        dssm.CombinedEncoder(4, bag=4, sketch=7, length_norm=0.5),
        dssm.CLSMEncoder(window=3, filters=6, units=4),
        small_encoder("word_sum", oov_buckets=64),
        small_encoder("combined_words"),
    ]
    asked = request(text=ENCODED)
    cases = [
        Case(export.export_model(each, folder), asked,
             {"embedding": each.encode(ENCODED)},
             1e-7 if each.compute_dtype == "float64" else 1e-6)
        for each in encoders
    ]  # fmt: skip
    return Exported(encoders, folder, cases)


WORDS = ["bolt", "hex", "steel", "glue", "wood", "上海"]
QUERIES = [
    *("hex bolt", "wood glue", "", "glue", "hex bolt"),
    *("上海 steel", b"\xff\xfe", "nul\x00bolt", "bolt " * 200, ""),
]
DOCUMENTS = [
    *("steel hex bolt", "hex bolt", "wood", "", "steel hex bolt"),
    *("wood 酒店 glue", "glue", "steel hose", "wood glue " * 30, ""),
]


def pair_scorer(matcher: str, words: str = "vocabulary") -> dssm.PairScorer:
    """A small pair scorer whose scores differ."""
    recipe = dssm.ScorerRecipe(
        matcher, SMALL_MATCHERS[matcher], words, word_dimension=4, max_words=8
    )
    model = build_scorer(recipe, 0, WORDS if words == "vocabulary" else ())
    if matcher == "RAE":  # its pretraining takes seconds, see test_rae.py
        model.matcher.statistics.assign([1.0, 0.5, 1.0, 1.0])
        model.matcher.pretrained.assign(1)
    elif model.matcher.needs_pretraining:
        queries = ["hex bolt", "wood glue", "steel hex", "glue"] * 4
        documents = ["steel bolt", "wood", "bolt", "glue steel"] * 4
        model.matcher.pretrain(model.words, queries, documents)
    random = np.random.default_rng(5)
    for weight in model.trainable_weights:
        weight.assign(weight + random.uniform(0, 0.5, weight.shape))
    return model


def scorer(folder: Path) -> Exported:
    """One that reads words, and one of letter trigrams in float64."""
    with precision("float64"):
        models = [pair_scorer("RecurrentCosine", "trigrams")]
    models.append(pair_scorer("MVLSTM"))
    asked = request(query=QUERIES, document=DOCUMENTS)
    cases = [
        Case(export.export_model(model, folder, version=7 + number), asked,
             {"score": model.score_pairs(QUERIES, DOCUMENTS)})
        for number, model in enumerate(models)
    ]  # fmt: skip
    return Exported(models, folder, cases)


LONG_TEXTS = [
    "The hex bolt of steel. Glue. Wood! The drill of the lamp? Wood glue",
    *("", "Wood", b"\xff\xfe glue. \xc3 Wood.", "今天天气很好。glue！「wood」"),
    *("The hex bolt. " * 300, "glue wood " * 200, "nul\0bolt.\n\nA \x01lamp."),
    "Wood of the lamp. " * 5000,
]
LONG_IDS = [f"d{number}" for number in range(len(LONG_TEXTS))]
N = [3, 1, 9, 2, 0, 260, 4, 1, 5]


def key_outputs(model: dssm.KeyVec) -> dict[str, np.ndarray]:
    """Each row has its own n, at most 250; the rest is "" and 0."""
    sentences, words = np.full([2, len(N), 250], b"", object)
    probabilities = np.zeros([len(N), 250], np.float32)
    for row, (text, n) in enumerate(zip(LONG_TEXTS, N, strict=True)):
        key_sentences = model.key_sentences(text, 250)[:n]
        for column, (sentence, p) in enumerate(key_sentences):
            sentences[row, column] = as_bytes([sentence])[0]
            probabilities[row, column] = p
        for column, (word, _) in enumerate(model.key_words(text, 250)[:n]):
            words[row, column] = word.encode()
    return {
        "sentences": sentences, "words": words, "probabilities": probabilities
    }  # fmt: skip


def keyvec(folder: Path) -> Exported:
    """A KeyVec of words with a retriever, and one of letter trigrams.

    That one is in float64, with a p of 1 and without limits.
    """
    words = small_keyvec()
    export.export_models(words, folder, export.Documents(LONG_IDS, LONG_TEXTS))
    with precision("float64"):
        trigrams = dssm.KeyVec(
            TrigramVectors(4, max_words=None), VOCABULARY, 3, [2], 3, 5,
            weighted=False, max_sentences=None,
        )  # fmt: skip
        randomise(trigrams)
    other = export.export_model(trigrams, folder.with_name("trigrams"))
    asked = request("keys", text=LONG_TEXTS, n=N)
    cases = [
        Case(version, one, expected)
        for version, model in (
            (folder / "keyvec/1", words), (other, trigrams),
        )
        for one, expected in (
            (asked, key_outputs(model)),
            (request(text=LONG_TEXTS),
             {"embedding": unit(model.encode(LONG_TEXTS)).numpy()}),
        )
    ]  # fmt: skip
    nearest = request(text=LONG_TEXTS, k=[1] * len(N))
    ids = {"ids": np.array(as_bytes(LONG_IDS))[:, np.newaxis].astype(object)}
    cases.append(Case(folder / "retriever/1", nearest, ids))
    return Exported(words, folder, cases)


SEARCHED = ["number seven", "title", "", "ünïcode"]
TITLES = [f"title number {i}" for i in range(50)]
# Longer and shorter than a small string holds (22 bytes), and other scripts.
IDS = [f"id-{i} " + "上海" * (i % 9) for i in range(50)]
MAX_K = 40
KS = [1, MAX_K, -5, 2**31 - 1]
TAGS = [
    [tag for tag in ("even", "third", "上海") if i % len(tag) == 0][: i % 3]
    for i in range(50)
]
"""None, one or two tags; of the numbers 0, 3, ... none."""


def found_scores(index: dssm.Index, width: int) -> np.ndarray:
    """The scores of `SEARCHED` and `KS` by exact search, and then -2."""
    scores = np.full([len(KS), width], -2, np.float32)
    for row, (hits, k) in enumerate(
        zip(index.search(SEARCHED, width), KS, strict=True)
    ):
        best = [hit.score for hit in hits[: max(k, 0)]]
        scores[row, : len(best)] = best
    return scores


def retriever(folder: Path, vectors: str = "float32") -> Exported:
    """A retriever with tags; that of int8 has encoders in float64."""
    query, document = (
        (dssm.RNNEncoder(8, dtype="float64") for _ in range(2))
        if vectors == "int8"
        else (dssm.LSTMEncoder(8), dssm.LSTMEncoder(8))
    )
    rows = document.encode(TITLES)
    if vectors == "int8":
        codes, scales = int8_codes(np.float32(rows))
        rows = codes * scales[:, np.newaxis]
    version = export.export_retriever(
        query, document, IDS, TITLES, folder, None, vectors, MAX_K, TAGS
    )
    index = dssm.Index.from_vectors(np.float32(rows), IDS, query)
    tags = ["even", "", "x,third", "上海"]
    cases = [
        Case(version, request(text=SEARCHED, k=KS),
             {"scores": found_scores(index, MAX_K)}),
        Case(version, request("filtered", text=SEARCHED, k=KS, tags=tags), {}),
        Case(version, request("known_tags", text=["", "a"]), {}),
    ]  # fmt: skip
    return Exported((index, query), version, cases)


def retriever_int8(folder: Path) -> Exported:
    """See `retriever`."""
    return retriever(folder, "int8")


HYBRID = HybridSettings(
    5.0, 3.0, 2.0, 1.0, 1.5, -4.0, b=0.6, bm25_words="stems"
)


def hybrid_model() -> dssm.TwoTower:
    """Returns two towers of a `CombinedEncoder` with all four parts."""
    return dssm.TwoTower(
        small_encoder("combined_words"), small_encoder("combined_words")
    )


def hybrid_scores(
    model: dssm.TwoTower | None,
    settings: HybridSettings,
    texts: list[str] = SEARCHED,
) -> np.ndarray:
    """What each part adds to the log-odds of each title, in evaluation."""
    vectors = HybridParts.of(model).systems()
    system = HybridSystem(vectors, settings, SEARCHED)
    parts = np.stack([*system.parts(texts, tuple(TITLES))])
    weighted = parts * np.array([*settings.weights.values()])[:, np.newaxis]
    base = np.full_like(weighted[:, :1], settings.base)
    return np.concatenate([weighted, base], axis=1).swapaxes(1, 2)


def hybrid(folder: Path) -> Exported:
    """A hybrid retriever of one run, in which queries are explained."""
    model = hybrid_model()
    documents = export.Documents(IDS, TITLES, tags=TAGS)
    *_, version = export.export_models(
        model, folder, documents, max_k=MAX_K, hybrid=HYBRID, queries=SEARCHED
    )
    tags = ["even", "", "x,third", "上海"]
    cases = [
        Case(version, request(text=SEARCHED, k=KS), {}),
        Case(version, request("filtered", text=SEARCHED, k=KS, tags=tags), {}),
        Case(version, request(
            "explained", text=SEARCHED, k=[2, 1, 0, 1], tags=tags), {}),
    ]  # fmt: skip
    return Exported(model, folder, cases)


KINDS: dict[str, Any] = {
    make.__name__: make
    for make in (*(encoder, scorer, keyvec, retriever, retriever_int8, hybrid),)
}
"""Name of a kind -> a function that exports its models into a folder."""
