"""Lists of five sentences, from docstrings of our own making."""

import itertools
import pathlib
import random

import pytest

from keras_lstm_dssm.data import Collection, api_sentences, open_collection
from keras_lstm_dssm.data.api_sentences import (
    SentencePair,
    adjacent_sentences,
    write_lists,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import normalize

WORDS = [a + b + c for a in "bdfkm" for b in "aeiou" for c in "lnrst"]


def sentence(rng: random.Random) -> str:
    return " ".join(rng.sample(WORDS, 6))


def made(modules: int = 80) -> list[SentencePair]:
    """80 modules of 6 pairs each, and some that share sentences."""
    rng = random.Random(1)
    pairs = [
        SentencePair(sentence(rng), sentence(rng), f"m{number // 6}")
        for number in range(6 * modules)
    ]
    return [
        *pairs,
        # One answer for two modules; nearly the same query in two modules.
        SentencePair(sentence(rng), pairs[0].answer.upper(), "m7"),
        SentencePair(pairs[20].query + " more", sentence(rng), "m30"),
        # A query that has another answer, which other queries have, too.
        SentencePair(pairs[12].query, pairs[13].answer, "m2"),
        # The answer of a query is itself a query, as in a paragraph.
        SentencePair(pairs[15].answer, sentence(rng), "m2"),
        SentencePair("says the same words", "Says the same: words", "m2"),
    ]


@pytest.fixture(scope="module")
def collection(tmp_path_factory) -> Collection:
    return write_lists(tmp_path_factory.mktemp("data") / "lists", made())


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


def test_lists_of_five(collection):
    pairs = made()
    lists = {}
    for split in collection.splits:
        for query, grades in collection.qrels(split).items():
            lists[collection.queries[query]] = {
                collection.documents[d]: grade for d, grade in grades.items()
            }
    answers: dict[str, set[str]] = {}
    for pair in pairs:
        answers.setdefault(pair.query, set()).add(pair.answer.lower())
    assert len(lists) == len(pairs) - 2  # one asked twice, one says the same
    for query, grades in lists.items():
        (positive,) = (text for text, grade in grades.items() if grade)
        assert len(grades) == 5 and positive in answers[query]
        for text in grades:
            assert text != query
            assert text == positive or text.lower() not in answers[query]
    first = [next(iter(grades.values())) for grades in lists.values()]
    assert 0.1 < sum(first) / len(first) < 0.3  # in random order


def test_no_text_is_in_two_splits(collection):
    texts, modules = {}, {}
    module_of = {pair.query: pair.module for pair in made()}
    for split in collection.splits:
        qrels = collection.qrels(split)
        queries = [collection.queries[query] for query in qrels]
        modules[split] = {module_of[query] for query in queries}
        texts[split] = set(normalize(queries, "alphanumeric")) | set(
            normalize(
                [collection.documents[d] for g in qrels.values() for d in g],
                "alphanumeric",
            )
        )
    for one, other in itertools.combinations(texts, 2):
        assert not texts[one] & texts[other]
        assert not modules[one] & modules[other]
    for together in (("m0", "m7"), ("m3", "m30")):
        assert any(set(together) <= some for some in modules.values())
    sizes = {split: len(collection.qrels(split)) for split in texts}
    total = sum(sizes.values())
    assert 0.05 < sizes["test"] / total <= 0.1
    assert 0.05 < sizes["dev"] / total <= 0.1


def test_negatives_are_near_the_positive(tmp_path):
    """With 400 answers K is 50: all are of the topic of the positive."""
    pairs = []
    for number in range(400):
        query = " ".join(f"q{number}w{i}" for i in range(5))
        topic = "red green blue" if number % 8 else "one two three"
        answer = f"{topic} a{number} b{number}"
        pairs.append(SentencePair(query, answer, f"m{number // 4}"))
    collection = write_lists(tmp_path / "lists", pairs)
    rare = 0
    for grades in collection.qrels("train").values():
        topics = {collection.documents[d].split()[0] for d in grades}
        assert len(topics) == 1
        rare += topics == {"one"}
    assert rare > 30
    # The ranks among the tied answers differ from list to list.
    drawn = {d for grades in collection.qrels("train").values() for d in grades}
    assert len(drawn) == len(collection.qrels("train"))


def test_few_answers_of_a_split_are_filled_up_by_rank(tmp_path):
    """Of the 50 answers like a positive of dev, some 5 are of dev."""
    pairs = [
        SentencePair(
            " ".join(f"q{number}w{i}" for i in range(5)),
            f"topic{number // 3} a{number} b{number} c{number} d{number}",
            f"m{number // 3}",
        )
        for number in range(300)
    ]
    collection = write_lists(tmp_path / "lists", pairs)
    for grades in collection.qrels("dev").values():
        (positive,) = (d for d, grade in grades.items() if grade)
        topic = collection.documents[positive].split()[0]
        near = [d for d in grades if topic in collection.documents[d]]
        assert len(grades) == 5 and len(near) == 3


def test_it_is_deterministic(collection, tmp_path):
    again = write_lists(tmp_path / "again", made())
    files = sorted(pathlib.Path(collection.folder).rglob("*.*"))
    assert len(files) == 6
    for path in files:
        other = again.folder / path.relative_to(collection.folder)
        assert path.read_bytes() == other.read_bytes()


def test_too_few_docstrings(tmp_path):
    with pytest.raises(InputError, match="answers for .*, expected 6 or more"):
        write_lists(tmp_path / "lists", made()[:24])


def test_it_is_built_once_in_the_cache(tmp_path, monkeypatch, capsys):
    docs = [
        (p.module, f"{p.query.capitalize()}. {p.answer.capitalize()}.")
        for p in made()
    ]
    monkeypatch.setattr(api_sentences, "distributions", lambda: [])
    monkeypatch.setattr(api_sentences, "docstrings", lambda: docs)
    monkeypatch.setenv("KERAS_LSTM_DSSM_CACHE", str(tmp_path))
    collection = open_collection("api_sentences")
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("api_sentences-")
    assert collection.folder == str(folder)
    printed = capsys.readouterr().err.splitlines()
    assert printed[0].startswith("Reading docstrings (once")
    assert [line.split(":")[0] for line in printed[-3:]] == [
        "train", "dev", "test"
    ]  # fmt: skip
    monkeypatch.delattr(api_sentences, "docstrings")
    again = open_collection("api_sentences")
    assert again.qrels("test") == collection.qrels("test")
    assert capsys.readouterr().err == ""
    train = {q for q, _ in again.clicks}
    assert train == {again.queries[q] for q in again.qrels("train")}
