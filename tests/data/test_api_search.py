import importlib.metadata
import itertools

import pytest

from keras_lstm_dssm.data import api_search
from keras_lstm_dssm.data.api_search import build_api_search, title
from keras_lstm_dssm.data.api_sources import (
    distributions,
    read_modules,
    source_files,
)
from keras_lstm_dssm.text import normalize


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache for a small corpus: the standard library and NumPy."""
    packages = [importlib.metadata.distribution("numpy")]
    modules = read_modules(packages)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api_search, "distributions", lambda: packages)
        # Read once for all tests: it takes most of the time.
        patch.setattr(api_search, "read_modules", lambda _: modules)
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("KERAS_LSTM_DSSM_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def collection(cache):
    return build_api_search()


@pytest.fixture(scope="module")
def titles(collection):
    """Query -> its titles, over all splits."""
    return {
        collection.queries[query]: [collection.documents[d] for d in scores]
        for split in collection.splits
        for query, scores in collection.qrels(split).items()
    }


@pytest.mark.parametrize(
    ("part", "answer"),
    [  # other wordings of the standard library and NumPy differ by version
        ("pseudo-inverse of a matrix", "numpy linalg pinv"),
        ("an array, checking for NaNs or Infs", "numpy asarray chkfinite"),
        ("step size of a date or time type", "numpy datetime data"),
        ("to a csv file", "csv writer writerows"),
        ("in the string, using sep as the", "str split"),
        ("to a JSON formatted str", "json dumps"),
    ],
)
def test_what_users_ask_for_is_there(titles, part, answer):
    assert any(
        part in query and answer in answers for query, answers in titles.items()
    )


def test_splits_are_by_query(collection):
    texts = [
        {collection.queries[q].casefold() for q in collection.qrels(split)}
        for split in ("train", "dev", "test")
    ]
    words = [set(normalize(part, "alphanumeric")) for part in texts]
    for first, second in itertools.combinations(words, 2):
        assert not first & second
    train, dev, test = texts
    total = len(collection.queries)
    assert sum(map(len, texts)) == total > 5000
    assert 0.07 < len(test) / total < 0.11
    assert 0.02 < len(dev) / total < 0.04
    clicks = list(collection.training_log())
    assert {pair.query.casefold() for pair in clicks} == train
    assert {p.document for p in clicks} < set(collection.documents.values())


def test_queries_and_titles_are_clean(collection, titles):
    assert len(set(collection.documents.values())) == len(collection.documents)
    assert len({query.casefold() for query in titles}) == len(titles)
    for query, answers in titles.items():
        assert query.isascii() and "`" not in query and query[-1] != "."
        assert 3 <= len(query.split()) <= 32
        assert 1 <= len(answers) <= 5
        for answer in answers:
            assert answer == " ".join(answer.lower().split())
            assert "_" not in answer and "." not in answer


def test_it_is_built_once_and_can_be_built_anywhere(
    cache, collection, tmp_path
):
    (folder,) = cache.iterdir()
    assert folder.name.startswith("api-")
    before = folder.stat()
    assert build_api_search().folder == str(folder) == collection.folder
    assert folder.stat() == before
    again = build_api_search(tmp_path / "again")
    for name in ("corpus.jsonl.gz", "clicks.train.tsv.gz", "qrels/test.tsv"):
        second = tmp_path / "again" / name
        assert second.read_bytes() == (folder / name).read_bytes()
    assert again.queries == collection.queries


def test_describe(collection):
    first, *rest = collection.describe().splitlines()
    documents, queries = len(collection.documents), len(collection.queries)
    assert first == f"{documents:,} titles, {queries:,} queries"
    assert [line.split(":")[0] for line in rest] == ["train", "dev", "test"]


def test_development_tools_do_not_change_the_corpus():
    names = {d.metadata["Name"].lower() for d in distributions()}
    assert {"numpy", "keras", "tensorflow"} < names
    assert not {"pytest", "ruff", "keras-lstm-dssm"} & names


def test_which_files_are_read():
    places = {p for _, p in source_files(distributions())}
    assert {"json/decoder.py", "numpy/linalg/__init__.py"} < places
    assert "tensorflow/_api/v2/test/__init__.py" in places
    assert not {p for p in places if "/tests/" in p or p.startswith("test/")}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("numpy.asarray_chkfinite", "numpy asarray chkfinite"),
        ("http.server.HTTPServer", "http server"),
        ("datetime.datetime.now", "datetime now"),
        ("keras.layers.Conv2DTranspose", "keras layers conv2d transpose"),
        ("xml.dom.minidom.parseString", "xml dom minidom parse string"),
        ("str.split", "str split"),
    ],
)
def test_title(name, words):
    assert title(name) == words
