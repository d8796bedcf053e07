"""The three corpora of docstrings: titles, documents and lists of sentences.

Titles are of the standard library and NumPy; the others of our own making."""

import importlib.metadata
import itertools
import random
from pathlib import Path

import pytest

from keras_lstm_dssm.data import (
    Collection,
    DocumentFolder,
    api_documents,
    api_search,
    api_sentences,
    open_collection,
    open_documents,
)
from keras_lstm_dssm.data.api_documents import (
    package_class,
    write_api_documents,
)
from keras_lstm_dssm.data.api_search import (
    build_api_search,
    title,
    write_api_search,
)
from keras_lstm_dssm.data.api_sentences import (
    SentencePair,
    adjacent_sentences,
    redraw_lists,
    write_lists,
)
from keras_lstm_dssm.data.api_sources import (
    Definition,
    distributions,
    read_modules,
    source_files,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import normalize

WORDS = [a + b + c for a in "bdfkm" for b in "aeiou" for c in "lnrst"]


def sentence(rng: random.Random, words: int = 6) -> str:
    return " ".join(rng.sample(WORDS, words))


def sentences(rng: random.Random, count: int) -> str:
    return " ".join(f"{sentence(rng, 9).capitalize()}." for _ in range(count))


def definitions() -> list[Definition]:
    """60 modules in 4 packages, of 4 docstrings each, and their likes."""
    rng = random.Random(1)
    packages = ["top.src", "top.beta", "top._hidden", "other"]
    made = [
        Definition("top", "", "The package which contains three others."),
        Definition("top.src", "", "Too short."),
        Definition("top.beta", "", "\n\n".join([sentences(rng, 1)] * 2)),
        Definition("top._hidden", "", ""),
        Definition("other", "", "Says nothing that any other one says."),
    ]
    for number in range(60):
        module = f"{packages[number % 4]}.m{number}"
        made.append(Definition(module, "", "A module."))
        for item in range(4):
            doc = f"{sentences(rng, 1)}\n\n{sentences(rng, 8 + item)}"
            made.append(Definition(module, f"f{item}", doc))
    shared, near = (
        made[n].doc.split("\n\n")[1].split(". ")[0] for n in (6, 11)
    )
    # A sentence of m0, and nearly one of m1.
    for module, text in (("m9", f"{shared}."), ("m17", f"{near} indeed.")):
        doc = f"{sentences(rng, 1)}\n\n{text} {sentences(rng, 8)}"
        made.append(Definition(f"top.beta.{module}", "g", doc))
    return [*made, Definition("other.m3", "again", made[6].doc)]


def pairs() -> list[SentencePair]:
    """80 modules of 6 pairs each, and some that share sentences."""
    rng = random.Random(1)
    made = [
        SentencePair(sentence(rng), sentence(rng), f"m{number // 6}")
        for number in range(6 * 80)
    ]
    return [
        *made,
        # One answer for two modules; nearly the same query in two modules.
        SentencePair(sentence(rng), made[0].answer.upper(), "m7"),
        SentencePair(made[20].query + " more", sentence(rng), "m30"),
        # A query that has another answer, which other queries have, too.
        SentencePair(made[12].query, made[13].answer, "m2"),
        # The answer of a query is itself a query, as in a paragraph.
        SentencePair(made[15].answer, sentence(rng), "m2"),
        SentencePair("says the same words", "Says the same: words", "m2"),
    ]


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> DocumentFolder:
    path = tmp_path_factory.mktemp("data") / "documents"
    return write_api_documents(path, definitions())


@pytest.fixture(scope="module")
def lists(tmp_path_factory) -> Collection:
    return write_lists(tmp_path_factory.mktemp("data") / "lists", pairs())


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
def search(cache) -> Collection:
    return build_api_search()


@pytest.fixture(scope="module")
def titles(search) -> dict[str, list[str]]:
    """Query -> its titles, over all splits."""
    return {
        search.queries[query]: [search.documents[d] for d in scores]
        for split in search.splits
        for query, scores in search.qrels(split).items()
    }


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*.*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def check_apart(texts: dict[str, set[str]]) -> None:
    """Checks that no text is in two splits, in other spelling neither."""
    words = [
        set(normalize(sorted(of), "alphanumeric")) for of in texts.values()
    ]
    assert texts.keys() == {"train", "dev", "test"}
    for one, other in itertools.combinations(words, 2):
        assert not one & other


def test_documents_share_no_sentence_among_splits(documents):
    texts: dict[str, set[str]] = {}
    modules: dict[str, set[str]] = {}
    for one in documents:
        texts.setdefault(one.split, set()).update(one.summary, one.sentences)
        modules.setdefault(one.split, set()).add(one.title.split()[0])
    check_apart(texts)
    check_apart(modules)
    for pair in ({"src.m0", "beta.m9"}, {"beta.m1", "beta.m17"}):
        together = {f"top.{name}" for name in pair}
        assert any(together <= of_split for of_split in modules.values())
    assert documents.count() == 242  # one docstring occurs twice
    assert 36 <= documents.count("test") <= 48
    assert 12 <= documents.count("dev") <= 24


def test_lists_share_no_text_among_splits(lists):
    texts, modules = {}, {}
    module_of = {pair.query: pair.module for pair in pairs()}
    for split in lists.splits:
        qrels = lists.qrels(split)
        texts[split] = {lists.queries[query] for query in qrels}
        modules[split] = {module_of[query] for query in texts[split]}
        texts[split] |= {lists.documents[d] for g in qrels.values() for d in g}
    check_apart(texts)
    check_apart(modules)
    for together in ({"m0", "m7"}, {"m3", "m30"}):
        assert any(together <= some for some in modules.values())
    sizes = {split: len(lists.qrels(split)) for split in texts}
    for split in ("test", "dev"):
        assert 0.05 < sizes[split] / sum(sizes.values()) <= 0.1


def test_titles_are_split_by_query(search):
    texts = {
        split: {search.queries[q].casefold() for q in search.qrels(split)}
        for split in ("train", "dev", "test")
    }
    check_apart(texts)
    total = len(search.queries)
    assert sum(map(len, texts.values())) == total > 5000
    assert 0.07 < len(texts["test"]) / total < 0.11
    assert 0.02 < len(texts["dev"]) / total < 0.04
    clicks = list(search.training_log())
    assert {pair.query.casefold() for pair in clicks} == texts["train"]
    assert {p.document for p in clicks} < set(search.documents.values())


def test_documents_and_lists_are_built_once_in_the_cache(
    documents, lists, tmp_path, monkeypatch, capsys
):
    docs = [
        Definition(
            p.module, "", f"{p.query.capitalize()}. {p.answer.capitalize()}."
        )
        for p in pairs()
    ]
    for module, made, name, build, said in (
        (api_documents, definitions(), "api_documents", open_documents,
         {"242"}),
        (api_sentences, docs, "api_sentences", open_collection,
         {"train:", "dev:", "test:"}),
    ):  # fmt: skip
        cache = tmp_path / name
        monkeypatch.setenv("KERAS_LSTM_DSSM_CACHE", str(cache))
        monkeypatch.setattr(module, "distributions", lambda: [])
        monkeypatch.setattr(module, "documented", lambda made=made: made)
        built = build(name)
        lock, folder = sorted(cache.iterdir())
        assert lock.name == ".lock"
        assert folder.name.startswith(f"{name}-")
        assert str(built.folder) == str(folder)
        head, *tail = capsys.readouterr().err.splitlines()
        assert head.startswith("Reading docstrings (once")
        assert said <= {line.split()[0] for line in tail}
        monkeypatch.delattr(module, "documented")
        again = build(name)
        assert capsys.readouterr().err == ""
        assert again.qrels("test") == built.qrels("test")
    of_lists = {lists.queries[query] for query in lists.qrels("train")}
    assert {q for q, _ in lists.clicks} == of_lists


def test_what_is_built_is_the_same_anywhere(
    cache, search, documents, lists, tmp_path
):
    _, folder = sorted(cache.iterdir())  # the first is a lock
    assert folder.name.startswith("api-")
    before = folder.stat()
    assert build_api_search().folder == str(folder) == search.folder
    assert folder.stat() == before
    again = [
        write_api_search(tmp_path / "search", api_search.distributions()),
        write_lists(tmp_path / "lists", pairs()),
        write_api_documents(tmp_path / "documents", definitions()),
    ]
    for one, other in zip((search, lists, documents), again, strict=True):
        found = contents(Path(one.folder))
        assert found == contents(Path(other.folder)) and len(found) >= 4


def test_what_is_in_a_document(tmp_path):
    body = [f"It has the {name} part." for name in "abcdefg"]
    doc = (
        "Sorts the `items` of a list.\nIt is stable.\n\n"
        + " ".join(body)
        + "\n\nSorts the items of a list. It has the A part.\n\nArgs:\n"
        "    key: Gives the order of\n        two items. Default is none.\n"
        "    others : list of int\n        The other items.\n\n"
        ">>> sort_the_items_of_it()\nThis is the output of it.\n"
    )
    short = "Sorts the items.\n\n" + " ".join(body)
    folder = write_api_documents(
        tmp_path / "new",
        [Definition("pack.a", "sort", doc), Definition("pack.b", "no", short)],
    )
    (document,) = folder
    assert document[1:] == (
        "pack.a sort",
        [*body, "Gives the order of two items.", "Default is none.",
         "The other items."],
        ["Sorts the items of a list.", "It is stable."], "pack", "train",
    )  # fmt: skip
    assert folder.splits == ()


def test_boilerplate_is_left_out(tmp_path):
    rng = random.Random(0)
    docs = [
        f"{sentences(rng, 1)}\n\nIn every one, of six.\n\n"
        + "In five of the six. " * bool(number)
        + sentences(rng, 8)
        for number in range(6)
    ]
    made = [Definition("m", f"f{n}", doc) for n, doc in enumerate(docs)]
    found = list(write_api_documents(tmp_path / "new", made))
    assert [len(one.sentences) for one in found] == [8, 9, 9, 9, 9, 9]
    assert found[1].sentences[0] == "In five of the six."


def test_classes_and_queries(documents):
    by_id = {one.id: one for one in documents}
    assert set(documents.counts.classes) == {"top", "top.beta", "other"}
    for split in ("dev", "test"):
        for query, grades in documents.qrels(split).items():
            (label,) = {by_id[key].label for key in grades}
            text = documents.queries[query]
            assert text.startswith("Says") == (label == "other")
            assert text.startswith("The package") == (label == "top")
            assert grades == {
                key: 1
                for key, one in by_id.items()
                if one.label == label and one.split == split
            }
    assert len(documents.qrels("test")) == 3
    # The docstring of a package that is a query is no document.
    assert all(one.title.count(" ") for one in by_id.values())


@pytest.mark.parametrize(("module", "label"), [
    ("a.b.c", "a.b"), ("a.b", "a.b"), ("a.src.b._c", "a.b"), ("a._d.e", "a"),
    ("a.b.f.g", "a.b"), ("_single", "single"),
])  # fmt: skip
def test_package_class(module, label):
    packages = {"a", "a.b", "a.src", "a.src.b", "a._d", "a.b.f"}
    assert package_class(module, packages) == label


def test_adjacent_sentences_of_5_to_50_words():
    doc = (
        "Sort the items of a list. It is a stable sort now. Go on.\n\n"
        ">>> sort()\n\nAn index is returned with it. It counts from zero up."
    )
    found = list(adjacent_sentences([("m", doc), ("n", doc), ("k", "One.")]))
    assert found == [
        ("Sort the items of a list", "It is a stable sort now", "m"),
        ("An index is returned with it", "It counts from zero up", "m"),
    ]


def test_lists_of_five(lists):
    of_query = {
        lists.queries[query]: {lists.documents[d]: g for d, g in grades.items()}
        for split in lists.splits
        for query, grades in lists.qrels(split).items()
    }
    answers: dict[str, set[str]] = {}
    for pair in pairs():
        answers.setdefault(pair.query, set()).add(pair.answer.lower())
    # One is asked twice, one says the same.
    assert len(of_query) == len(pairs()) - 2
    for query, grades in of_query.items():
        (positive,) = (text for text, grade in grades.items() if grade)
        assert len(grades) == 5 and positive in answers[query]
        for text in grades:
            assert text != query
            assert text == positive or text.lower() not in answers[query]
    first = [next(iter(grades.values())) for grades in of_query.values()]
    assert 0.1 < sum(first) / len(first) < 0.3  # in random order


def answered(answers: list[str], of_a_module: int) -> list[SentencePair]:
    """Gives each answer a question of other words, and a few one module."""
    return [
        SentencePair(
            " ".join(f"q{n}w{i}" for i in range(5)),
            answer,
            f"m{n // of_a_module}",
        )
        for n, answer in enumerate(answers)
    ]


def test_negatives_are_near_the_positive(tmp_path):
    """With 400 answers K is 50: all are of the topic of the positive."""
    answers = [
        f"{'red green blue' if n % 8 else 'one two three'} a{n} b{n}"
        for n in range(400)
    ]
    collection = write_lists(tmp_path / "lists", answered(answers, 4))
    rare = 0
    for grades in collection.qrels("train").values():
        (topic,) = {collection.documents[d].split()[0] for d in grades}
        rare += topic == "one"
    assert rare > 30
    # The ranks among the tied answers differ from list to list.
    drawn = {d for grades in collection.qrels("train").values() for d in grades}
    assert len(drawn) == len(collection.qrels("train"))


def test_few_answers_of_a_split_are_filled_up_by_rank(tmp_path):
    """Of the 50 answers like a positive of dev, some 5 are of dev."""
    answers = [f"topic{n // 3} a{n} b{n} c{n} d{n}" for n in range(300)]
    collection = write_lists(tmp_path / "lists", answered(answers, 3))
    for grades in collection.qrels("dev").values():
        (positive,) = (d for d, grade in grades.items() if grade)
        topic = collection.documents[positive].split()[0]
        near = [d for d in grades if topic in collection.documents[d]]
        assert len(grades) == 5 and len(near) == 3


def test_lists_drawn_anew_keep_queries_positives_and_splits(lists, tmp_path):
    def by_split(collection, grade):
        return {
            (split, collection.queries[query]): {
                collection.documents[d] for d, g in grades.items() if g == grade
            }
            for split in collection.splits
            for query, grades in collection.qrels(split).items()
        }

    drawn = redraw_lists(tmp_path / "drawn", lists)
    assert by_split(drawn, 1) == by_split(lists, 1)
    assert by_split(drawn, 0) != by_split(lists, 0)
    answers = {
        (split, *texts) for (split, _), texts in by_split(lists, 1).items()
    }
    for (split, _), negatives in by_split(drawn, 0).items():
        assert len(negatives) == 4
        assert {(split, text) for text in negatives} <= answers
    assert set(drawn.clicks) == set(lists.clicks)


def test_too_few_docstrings(tmp_path):
    with pytest.raises(InputError, match="answers for .*, expected 6 or more"):
        write_lists(tmp_path / "lists", pairs()[:24])


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


def test_queries_and_titles_are_clean(search, titles):
    assert len(set(search.documents.values())) == len(search.documents)
    assert len({query.casefold() for query in titles}) == len(titles)
    for query, answers in titles.items():
        assert query.isascii() and "`" not in query and query[-1] != "."
        assert 3 <= len(query.split()) <= 32 and 1 <= len(answers) <= 5
        for answer in answers:
            assert answer == " ".join(answer.lower().split())
            assert "_" not in answer and "." not in answer


def test_which_files_are_read():
    """Tools of development do not change the corpus."""
    names = {d.metadata["Name"].lower() for d in distributions()}
    assert {"numpy", "keras", "tensorflow"} < names
    assert not {"pytest", "ruff", "keras-lstm-dssm"} & names
    places = {p for _, p in source_files(distributions())}
    assert {"json/decoder.py", "numpy/linalg/__init__.py"} < places
    assert "tensorflow/_api/v2/test/__init__.py" in places
    assert not {p for p in places if "/tests/" in p or p.startswith("test/")}


@pytest.mark.parametrize(("name", "words"), [
    ("numpy.asarray_chkfinite", "numpy asarray chkfinite"),
    ("http.server.HTTPServer", "http server"),
    ("datetime.datetime.now", "datetime now"),
    ("keras.layers.Conv2DTranspose", "keras layers conv2d transpose"),
    ("xml.dom.minidom.parseString", "xml dom minidom parse string"),
    ("str.split", "str split"),
])  # fmt: skip
def test_title(name, words):
    assert title(name) == words
