"""Baselines that count words: scores by hand and by other libraries, wrong use.

PLSA and Skip-Thought have files of their own."""

import gzip
import json
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.data import (
    Document,
    Triples,
    open_collection,
    write_documents,
)
from keras_lstm_dssm.data.collection import SPLITS
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import ClusterTask, Task, evaluate_systems, mean
from keras_lstm_dssm.evaluation.bm25 import (
    BM25System,
    alphanumeric,
    space_separated,
    stemmed,
)
from keras_lstm_dssm.papers.baseline_rows import Baseline, baseline_grid
from keras_lstm_dssm.papers.baselines import (
    Doc2VecSystem,
    LSASystem,
    RandomVectorSystem,
    TfidfSystem,
    UnigramLMSystem,
    Word2VecSystem,
    _hash,
    document_baselines,
)
from keras_lstm_dssm.papers.plsa import PLSASystem
from keras_lstm_dssm.papers.skip_thought import SkipThoughtSystem
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.settings.programs import TableSettings
from keras_lstm_dssm.text import vocabulary_of
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors
from tests.bare_package import BARE_PACKAGE
from tests.training.small_documents import write_small_documents

pytest.importorskip("sklearn")
doc2vec = pytest.importorskip("gensim.models.doc2vec")
word2vec = pytest.importorskip("gensim.models.word2vec")

LINES = [
    "Red wool hat.", "Warm wool hat", "warm red coat", "garden hose reel",
    "water hose reel", "garden water pump",
] * 20  # fmt: skip
WORDS = [alphanumeric(line) for line in LINES]
TEXTS = ["red hat hat", "Blue hat", "garden hose", "red hose reel"]


@pytest.fixture(scope="module")
def systems() -> dict[str, Any]:
    """Baselines with vectors, which have learnt ten words."""
    made = {
        "tfidf": TfidfSystem(),
        "lsa": LSASystem(3),
        "word2vec": Word2VecSystem(vector_size=8),
        "doc2vec": Doc2VecSystem(vector_size=8, sample=0.0),
    }
    return {name: system.fit(LINES) for name, system in made.items()}


def test_importing_the_package_of_baselines_is_cheap():
    code = """
import keras_lstm_dssm.evaluation, keras_lstm_dssm.papers
heavy = {"bm25s", "gensim", "scipy", "sklearn", "snowballstemmer", "torch"}
heavy = (heavy | {"ir_measures", "tensorflow", "keras"}) & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", BARE_PACKAGE + code], check=True)


@pytest.mark.parametrize("name", ["tfidf", "lsa", "word2vec", "doc2vec"])
def test_ranks_by_the_cosine_of_vectors(systems, name):
    documents = {"a": "wool hat", "b": "Red coat", "c": "unheard", "d": ""}
    system = systems[name]
    run = system.rerank(
        {"q": "coat red"}, {"q": ["c", "a", "b", "d"]}, documents
    )
    vectors = system.encode(["coat red", *documents.values()])
    if name == "tfidf":
        vectors = vectors.toarray()
    lengths = np.linalg.norm(vectors, axis=1)
    cosines = (
        vectors[1:] @ vectors[0] / np.maximum(lengths[1:] * lengths[0], 1e-9)
    )
    expected = dict(zip(documents, cosines, strict=True))
    assert expected["c"] == expected["d"] == 0
    assert run["q"] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert next(iter(run["q"])) == "b"
    if name != "doc2vec":  # which infers a vector from the words in order
        assert expected["b"] == pytest.approx(1)
    found = system.retrieve({"q": "coat red"}, documents, 4)
    assert found["q"].items() <= run["q"].items()
    assert len(found["q"]) == (1 if name == "tfidf" else 4)


def test_wide_paragraph_vectors():
    """From 256 numbers on, gensim wrote into memory that it had freed."""
    system = Doc2VecSystem(400, sample=0.0).fit(["red hat", "blue hat"])
    first, second = system.encode(["red hat", "blue hat"])
    assert first.shape == (400,) and not np.allclose(first, second)
    again = Doc2VecSystem(400, sample=0.0).fit(["red hat", "blue hat"])
    np.testing.assert_array_equal(again.encode(["red hat"]), [first])


@pytest.mark.parametrize("system", [BM25System(), UnigramLMSystem()])
def test_what_matches_nothing_is_not_found_and_yet_reranked(system):
    documents = {"a": "red hat", "b": "garden hose", "c": ""}
    queries = {"q1": "unheard", "q2": ""}
    nothing = {"q1": {}, "q2": {}}
    assert system.retrieve(queries, documents, 10) == nothing
    candidates = {"q1": ["b", "a", "c"], "q2": ["c"]}
    run = system.rerank(queries, candidates, documents)
    assert {q: set(found) for q, found in run.items()} == {
        q: set(found) for q, found in candidates.items()
    }
    assert run["q2"] == {"c": 0.0}
    # A corpus without words.
    run = system.rerank({"q": "x"}, {"q": ["a"]}, {"a": "", "b": ""})
    assert run == {"q": {"a": 0.0}}


@pytest.mark.parametrize(("use", "message"), [
    *(
        (lambda kind=kind: kind().fit([""]), "found no word in 1 titles")
        for kind in (TfidfSystem, LSASystem, PLSASystem, Word2VecSystem,
                     Doc2VecSystem)
    ),
    *(
        (lambda kind=kind: kind().encode(["hat"]),
         rf"{kind.__name__} is not trained.*call fit\(")
        for kind in (TfidfSystem, LSASystem, Word2VecSystem, Doc2VecSystem,
                     SkipThoughtSystem)
    ),
    (lambda: PLSASystem().retrieve({"q": "x"}, {"a": "x"}, 1),
     "PLSASystem is not trained"),
    *(
        (lambda options=options: PLSASystem(**options), "expected")
        for options in ({"topics": 0}, {"topic_prior": -0.1},
                        {"background": 1.5})
    ),
    *(
        (lambda mu=mu: UnigramLMSystem(mu), "expected a number above 0")
        for mu in (0.0, -1.0, math.nan)
    ),
    (lambda: TfidfSystem(min_count=3).fit(TEXTS),
     "no word is in min_count=3 of 4 text"),
    (lambda: Doc2VecSystem(min_count=2).fit(["red hat"]),
     "no word occurs min_count=2 times"),
    (lambda: Doc2VecSystem().fit(["red hat"], ["a", "b"]),
     "found 2 classes for 1 titles, expected a class for each"),
    (lambda: Word2VecSystem().fit(["red hat"]),
     "no word occurs min_count=5 times in"),
    (lambda: Word2VecSystem().fit("red hat"),
     "found 'red hat', expected a sequen"),
    (lambda: Word2VecSystem().fit(["red hat", 3]),
     "title 2: found 3, expected a str"),
])  # fmt: skip
def test_wrong_use(use, message):
    with pytest.raises(InputError, match=message):
        use()


def test_every_baseline_ranks_and_clusters():
    """All baselines but random vectors find the two topics of the texts."""
    rng = np.random.default_rng(0)
    topics = {"wear": "hat coat shoe wool scarf", "tools": "hose pump saw nail"}
    texts = {
        f"{topic}{i}": "\n".join(
            " ".join(rng.choice(words.split(), 6)) for _ in range(8)
        )
        for topic, words in topics.items()
        for i in range(12)
    }
    made = document_baselines(list(texts.values()))
    classes = {document: document.rstrip("0123456789") for document in texts}
    qrels = {
        topic: {d: 1 for d, name in classes.items() if name == topic}
        for topic in topics
    }
    task = Task(topics, texts, qrels, depth=len(texts))
    results = evaluate_systems(task, made)
    vectors = "tfidf lsa word2vec doc2vec random_vectors".split()
    assert list(results) == ["bm25", *vectors, "random"]
    for name in ("bm25", "tfidf", "lsa"):
        assert results[name]["map"] == pytest.approx(1)
    clustering = ClusterTask.from_classes(texts, classes, seeds=1)
    ari = {
        name: mean(clustering.measure(made[name])[1], ["ari"])["ari"]
        for name in vectors
    }
    assert ari["tfidf"] == ari["lsa"] == 1
    assert abs(ari["random_vectors"]) < 0.2
    for name in ("word2vec", "doc2vec"):
        assert made[name].encode(["hat"]).shape[1] == 100


def test_vectors_are_the_same_in_another_process():
    """Its strings have other hashes."""
    code = f"""{BARE_PACKAGE}
from keras_lstm_dssm.papers import Doc2VecSystem, RandomVectorSystem
print(RandomVectorSystem(400).encode(["red hat"]).tobytes().hex())
system = Doc2VecSystem(vector_size=4).fit({LINES[:6]!r})
print(system.encode(["red hat"]).tobytes().hex())
"""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    systems = RandomVectorSystem(400), Doc2VecSystem(vector_size=4)
    systems[1].fit(LINES[:6])
    expected = [each.encode(["red hat"]).tobytes().hex() for each in systems]
    assert found.splitlines() == expected


def test_random_vectors_depend_on_the_text_alone():
    vectors = RandomVectorSystem(400).encode(["red hat", "blue hat", "red hat"])
    assert vectors.dtype == np.float32
    assert np.array_equal(vectors[0], vectors[2])
    # Independent directions: the cosine has deviation 1/sqrt(400).
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert abs(unit[0] @ unit[1]) < 4 / 20
    other = RandomVectorSystem(400, seed=1).encode(["red hat"])[0]
    assert abs(other @ unit[0] / np.linalg.norm(other)) < 4 / 20


@pytest.mark.parametrize(("name", "options"), [
    ("plsa", {"tokenizer": "stemmed", "topics": 2}),
    ("doc2vec", {"tokenizer": "stemmed", "vector_size": 5, "sample": 0.0}),
    ("tfidf", {"tokenizer": "stemmed"}),
    ("random_vectors", {}),
])  # fmt: skip
def test_a_baseline_is_what_its_name_and_options_say(
    name, options, settings, tmp_path
):
    data = open_data(settings, tmp_path)
    kind: Any = {
        "plsa": PLSASystem, "doc2vec": Doc2VecSystem, "tfidf": TfidfSystem,
        "random_vectors": RandomVectorSystem,
    }[name]  # fmt: skip
    seed = {} if name == "tfidf" else {"seed": 4}
    words = {"tokenizer": stemmed} if options else {}
    expected = kind(**{**options, **words, **seed})
    if options:
        expected.fit(data.texts)
    trained = Baseline().train(name, options, 4, data)
    assert data.dev.run(trained.system) == data.dev.run(expected)
    assert trained.dev == data.measure_on_dev(expected)
    assert trained.parameters == expected.parameters
    assert trained.train_seconds > 0
    assert options == {} or options["tokenizer"] == "stemmed"  # as it was


def test_grids(settings, tmp_path):
    assert len(baseline_grid("bm25")) == 3 * 5 * 5
    assert len(baseline_grid("plsa")) == 2 * 2
    assert baseline_grid("random") == [{}]
    data = open_data(settings, tmp_path)
    with pytest.raises(ValueError, match="bm26"):
        Baseline().train("bm26", {}, 0, data)


def test_sums_of_the_vectors_that_pair_scorers_start_with(mv_lstm, tmp_path):
    data = open_data(mv_lstm.settings, tmp_path)
    lists = open_collection(mv_lstm.settings.data)
    texts = Triples.from_collection(lists).texts
    vocabulary = vocabulary_of(texts)
    starts = skip_gram_vectors(texts, vocabulary, epochs=30, seed=3)
    glue, the = (starts[vocabulary.index(word)] for word in ("glue", "the"))
    count = {word: sum(word in t.split() for t in texts) for word in vocabulary}
    idf = {word: np.log(len(texts) / n) for word, n in count.items()}
    assert count["the"] == 6
    for name, expected in (
        ("skip_gram", 2 * glue + the),
        ("skip_gram_idf", 2 * glue * idf["glue"] + the * idf["the"]),
    ):
        trained = Baseline().train(name, {}, 3, data)
        assert trained.dev == data.measure_on_dev(trained.system) > 0.5
        vectors = trained.system.encode_query(["Glue the unheard glue", ""])
        np.testing.assert_allclose(vectors[0], expected, rtol=1e-5)
        assert not vectors[1].any()


LM_DOCUMENTS = {
    "a": "hat red hat", "b": "a blue hat for the winter", "c": "garden hose",
    "d": "",
}  # fmt: skip


def likelihood(query: str, title: str, mu: float) -> float:
    """Zhai and Lafferty 2004, word by word."""
    corpus = [w for other in LM_DOCUMENTS.values() for w in alphanumeric(other)]
    words = alphanumeric(title)
    return sum(
        math.log(
            (words.count(w) + mu * corpus.count(w) / len(corpus))
            / (len(words) + mu)
        )
        for w in alphanumeric(query)
        if w in corpus
    )


@pytest.mark.parametrize("mu", [0.5, 10.0, 2000.0])
def test_the_likelihood_of_a_query(mu):
    query, ids = "red HAT hat tie", list(LM_DOCUMENTS)
    expected = {d: likelihood(query, t, mu) for d, t in LM_DOCUMENTS.items()}
    system = UnigramLMSystem(mu)
    run = system.rerank({"q": query}, {"q": ids}, LM_DOCUMENTS)
    assert run["q"] == pytest.approx(expected, rel=1e-6)
    found = system.retrieve({"q": query}, LM_DOCUMENTS, 10)
    assert [*found["q"].items()] == [(d, run["q"][d]) for d in ("a", "b")]


def test_textbook_example_of_the_likelihood():
    """Manning, Raghavan, Schuetze 2008, example 12.3: mu = |d| = 8."""
    documents = {
        "d1": "Xyzzy reports a profit but revenue is down",
        "d2": "Quorus narrows quarter loss but revenue decreases further",
    }
    run = UnigramLMSystem(8).retrieve({"q": "revenue down"}, documents, 2)
    found = {d: math.exp(score) for d, score in run["q"].items()}
    assert list(found) == ["d1", "d2"]
    assert found == pytest.approx({"d1": 3 / 256, "d2": 1 / 256}, rel=1e-5)


def weights_by_formula(counts: dict[str, int]) -> dict[str, float]:
    """(1 + ln tf) (1 + ln((1 + n)/(1 + df))), scaled to length 1."""
    frequency = {
        word: sum(word in text.lower().split() for text in TEXTS)
        for word in " ".join(TEXTS).lower().split()
    }
    weights = {
        word: (1 + np.log(count))
        * (1 + np.log((1 + len(TEXTS)) / (1 + frequency[word])))
        for word, count in counts.items()
    }
    length = np.sqrt(sum(w * w for w in weights.values()))
    return {word: w / length for word, w in weights.items()}


def test_weights_of_tfidf_equal_their_formula():
    system = TfidfSystem().fit(TEXTS)
    assert system.parameters == 6
    words = ["red", "hat", "blue", "garden", "hose", "reel"]
    vectors = system.encode(["Hat red hat HAT unheard", "", "unheard"])
    expected = weights_by_formula({"hat": 3, "red": 1})
    row = dict(zip(words, vectors.toarray()[0].tolist(), strict=True))
    assert row == pytest.approx(dict.fromkeys(words, 0.0) | expected)
    assert not vectors[1:].toarray().any()
    frequent = TfidfSystem(min_count=2).fit(TEXTS)
    assert frequent.parameters == 3  # red, hat, hose
    assert not frequent.encode(["blue garden reel"]).toarray().any()


def test_lsa_is_the_best_approximation_of_the_cosines():
    """With all components, the vectors of the training keep their products."""
    tfidf = TfidfSystem().fit(TEXTS).encode(TEXTS).toarray()
    vectors = LSASystem().fit(TEXTS).encode(TEXTS)
    assert vectors.shape == (4, 4)
    np.testing.assert_allclose(vectors @ vectors.T, tfidf @ tfidf.T, atol=1e-6)
    two = LSASystem(2).fit(TEXTS)
    assert two.parameters == 6 + 2 * 6
    singular = np.linalg.svd(tfidf)[1]
    np.testing.assert_allclose(
        np.linalg.norm(two.encode(TEXTS), axis=0), singular[:2], rtol=1e-6
    )
    assert not two.encode(["unheard"]).any()


def test_settings_of_lsa():
    system = LSASystem(1, min_count=2, tokenizer=space_separated, seed=3)
    texts = ["red-hat hose", "red-hat garden hose"]
    assert system.fit(texts).tfidf.parameters == 2
    assert system.encode(["red-hat hose"]) == pytest.approx(1)
    assert LSASystem().fit(["red hat"]).encode(["hat"]).shape == (1, 1)
    assert LSASystem().fit(["hat", "hat"]).encode(["hat"]) == pytest.approx(1)


def test_clusters_of_news_equal_the_reference_metrics(shared_data):
    """The metrics are k-means on TF-IDF and SVD 100, the mean of 5 seeds."""
    with gzip.open(shared_data / "bbc" / "documents.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    texts = {row["_id"]: "\n".join(row["sentences"]) for row in rows}
    test = [row for row in rows if row["split"] == "test"]
    task = ClusterTask.from_classes(
        {row["_id"]: texts[row["_id"]] for row in test},
        {row["_id"]: row["class"] for row in test},
    )
    assert task.describe() == "357 documents in 5 classes"
    assert task.random() == pytest.approx(
        {"f1": 0.203, "v": 0.015, "ari": 0.001, "ami": 0.001}, abs=0.003
    )
    training = [texts[r["_id"]] for r in rows if r["split"] == "train"]
    lsa = LSASystem().fit(training)
    assert mean(task.measure(lsa)[1], task.measures) == pytest.approx(
        {"f1": 0.948, "v": 0.922, "ari": 0.934, "ami": 0.921}, abs=0.01
    )


def test_word2vec_trains_skip_gram_on_lines_as_gensim_does(systems):
    texts = ["\n".join(LINES[n : n + 3]) + "\n\n" for n in range(0, 120, 3)]
    system = Word2VecSystem(vector_size=8).fit(texts)
    model = word2vec.Word2Vec(
        WORDS, vector_size=8, window=5, negative=5, epochs=20, min_count=5,
        sg=1, seed=0, workers=1,
    )  # fmt: skip
    assert model.wv.index_to_key == system.words_.index_to_key
    assert np.array_equal(model.wv.vectors, system.words_.vectors)
    assert system.parameters == 2 * 8 * 10
    vectors = system.encode(["Red, red\nhose unheard!", "", "unheard"])
    mean_of_words = (2 * model.wv["red"] + model.wv["hose"]) / 3
    np.testing.assert_allclose(vectors[0], mean_of_words, rtol=1e-5)
    assert not vectors[1:].any()
    other = Word2VecSystem(vector_size=8, seed=1).fit(texts)
    assert not np.allclose(other.encode(["hat"]), system.encode(["hat"]))


def test_no_word_of_a_long_text_is_left_out():
    """gensim would ignore all words of a sentence after the 10,000th."""
    long = ["hat"] * 10_000 + ["hose", "reel"] * 20
    found = Word2VecSystem(vector_size=2, epochs=1).fit([" ".join(long)])
    expected = word2vec.Word2Vec(
        [long[:10_000], long[10_000:]],
        vector_size=2, epochs=1, sg=1, seed=0, workers=1,
    )  # fmt: skip
    assert np.array_equal(expected.wv.vectors, found.words_.vectors)


def test_doc2vec_has_the_settings_of_the_paper():
    model = Doc2VecSystem().fit(["red hat", "blue hat"]).model_
    assert (model.window, model.vector_size, model.sample) == (5, 100, 1e-4)
    assert (model.negative, model.epochs, model.min_count) == (5, 30, 1)
    assert model.dm and model.workers == 1


def test_doc2vec_trains_and_infers_as_gensim_does(systems, monkeypatch):
    """With gensim's start and random numbers, vectors equal gensim's."""
    system = systems["doc2vec"]
    # Words in, words out, titles.
    assert system.parameters == 8 * (10 + 10 + len(LINES))
    model = doc2vec.Doc2Vec(
        [doc2vec.TaggedDocument(words, [i]) for i, words in enumerate(WORDS)],
        vector_size=8, window=5, sample=0, negative=5, epochs=30, min_count=1,
        seed=0, workers=1,
    )  # fmt: skip
    assert np.array_equal(model.wv.vectors, system.model_.wv.vectors)
    start = doc2vec.pseudorandom_weak_vector

    def stable(size: int, seed_string: str) -> np.ndarray:
        return start(size, seed_string, _hash)

    found = system.encode(["Red, unheard hose!"])
    monkeypatch.setattr(doc2vec, "pseudorandom_weak_vector", stable)
    system.model_.random.seed(0)
    assert np.array_equal(found[0], system.model_.infer_vector(["red", "hose"]))


def test_doc2vec_learns_from_classes_as_gensim_does():
    """A class is a second tag of its texts; a text may have no class."""
    classes = (["wear"] * 3 + ["tools"] * 2 + [""]) * 20
    tags = [[i, f"class {c}"] if c else [i] for i, c in enumerate(classes)]
    pairs = zip(WORDS, tags, strict=True)
    model = doc2vec.Doc2Vec(
        [doc2vec.TaggedDocument(words, of_text) for words, of_text in pairs],
        vector_size=8, window=5, sample=0, negative=5, epochs=30, min_count=1,
        seed=0, workers=1,
    )  # fmt: skip
    system = Doc2VecSystem(vector_size=8, sample=0.0).fit(LINES, classes)
    assert np.array_equal(model.dv.vectors, system.model_.dv.vectors)
    assert np.array_equal(model.wv.vectors, system.model_.wv.vectors)
    assert system.parameters == 8 * (10 + 10 + len(LINES) + 2)


def test_a_table_trains_doc2vec_with_classes(tmp_path):
    folder = write_small_documents(tmp_path / "data")
    settings = TableSettings(data=str(folder.folder), documents=True)
    data = open_data(settings, tmp_path)
    name = "doc2vec_classes"
    trained = Baseline(seeded=True).train(name, {}, 3, data).system
    # After the vectors of the ten texts.
    assert trained.model_.dv.key_to_index == {
        "class wear": 10, "class tools": 11,
    }  # fmt: skip
    assert trained.seed == 3


def test_a_table_without_classes_refuses_doc2vec_with_classes(tmp_path):
    sentences = ["red hat", "blue hat"]
    texts = [Document(split, "", sentences, [], "", split) for split in SPLITS]
    qrels = {split: {"q": {split: 1}} for split in ("dev", "test")}
    folder = write_documents(tmp_path / "data", texts, {"q": "hat"}, qrels)
    settings = TableSettings(data=str(folder.folder), documents=True)
    data = open_data(settings, tmp_path)
    with pytest.raises(InputError, match="no training document has a class, w"):
        Baseline().train("doc2vec_classes", {}, 0, data)


def test_vectors_of_doc2vec_do_not_depend_on_other_texts(systems):
    texts = ["red hat", "garden hose", "wool"]
    vectors = systems["doc2vec"].encode(texts)
    one, other = (
        Doc2VecSystem(vector_size=8, sample=0.0, seed=seed).fit(LINES)
        for seed in (0, 1)
    )
    assert np.array_equal(one.encode(texts[::-1])[::-1], vectors)
    assert not np.allclose(other.encode(texts), vectors)
