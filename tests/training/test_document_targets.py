"""Key words and targets of documents, and batches of them."""

import math
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.data import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.training import salience
from keras_lstm_dssm.training.document_targets import (
    DocumentExamples,
    DocumentTargets,
    KeyWords,
    Target,
)

WORDS = [
    Document("d1", "", ["Sorts a list.", "Quickly!"],
             ["Sort the LIST, then sort it: list's order."]),
    Document("d2", "", ["A list of trees."], ["Trees; an x, and order"]),
    Document("d3", "", ["No list here."], []),
    Document("d4", "", ["\u4e16 \u754c"], ["\u4e16 \u754c \u4e16", "1st"]),
]  # fmt: skip


def test_hand_made_key_words():
    key_words = KeyWords(WORDS)
    assert key_words.documents == 4
    # df: sort 1, list 3, order 2, trees 1; "sorts" is another word.
    idf = {"sort": 1, "list": 3, "order": 2, "trees": 1, "none": 0}
    for word, frequency in idf.items():
        expected = math.log(5 / (1 + frequency)) + 1
        assert key_words.idf(word) == pytest.approx(expected)
    assert list(key_words.of(WORDS)) == [
        ["sort", "list", "order"],  # 2 * 1.92, 2 * 1.22, 1.51
        ["trees", "order"],
        [],
        ["\u4e16", "\u754c", "1st"],
    ]


def test_key_words_of_the_whole_document():
    """The term frequency counts words of the sentences and the summary."""
    of_all = KeyWords(WORDS, count=4, source="document")
    assert list(of_all.of(WORDS)) == [
        ["sort", "list", "sorts", "quickly"],  # 2 * 1.92, 3 * 1.22, 1.92
        ["trees", "order", "list"],
        ["list"],
        ["\u4e16", "\u754c", "1st"],
    ]
    with pytest.raises(InputError, match="source must be one of summary, doc"):
        KeyWords(WORDS, source="title")


def test_number_and_stop_words():
    of_first = [WORDS[0]]
    assert list(KeyWords(WORDS, count=1).of(of_first)) == [["sort"]]
    all_words = KeyWords(WORDS, stop_words=(), split="space")
    assert list(all_words.of(of_first)) == [
        ["sort", "the", "list,", "then", "it:", "list's", "order."]
    ]
    with pytest.raises(
        InputError, match="count is 0: expected a whole number of 1 or more"
    ):
        KeyWords(WORDS, count=0)
    with pytest.raises(InputError, match="split must be one of"):
        KeyWords(WORDS, split="letters")
    with pytest.raises(InputError, match="found no training documents"):
        KeyWords([])


def test_many_documents_against_numpy():
    rng = np.random.default_rng(1)
    words = np.array([f"w{number}x" for number in range(80)])

    def drawn(count: int) -> np.ndarray:
        return (rng.pareto(0.7, count) * 4).astype(int).clip(0, 79)

    bodies = [drawn(30) for _ in range(600)]
    summaries = [drawn(60) for _ in range(600)]
    documents = [
        Document(str(n), "", [" ".join(words[body])], [" ".join(words[part])])
        for n, (body, part) in enumerate(zip(bodies, summaries, strict=True))
    ]
    chosen = list(KeyWords(documents, count=10).of(documents))
    both = [
        np.bincount(np.concatenate(pair), minlength=80) > 0
        for pair in zip(bodies, summaries, strict=True)
    ]
    idf = np.log((1 + 600) / (1 + np.sum(both, axis=0))) + 1
    for summary, key_words in zip(summaries, chosen, strict=True):
        weights = np.bincount(summary, minlength=80) * idf
        expected = np.sort(weights[weights > 0])[::-1][:10]
        found = [weights[int(word[1:-1])] for word in key_words]
        np.testing.assert_allclose(found, expected)


DOCUMENTS = [
    Document("d1", "", ["Cats sleep.", "Dogs bark.", "Trees grow.", "Go on."],
             ["Some trees grow tall."]),
    Document("d2", "", ["One.", "Birds fly south."], ["Birds fly."]),
    Document("d3", "", ["No.", "Nothing."], []),
    Document("d4", "", ["Cats bark."], ["Unrelated words."]),
]  # fmt: skip


@pytest.fixture
def targets() -> DocumentTargets:
    teacher = salience.salience_teacher("bm25", DOCUMENTS)
    return DocumentTargets.from_teacher(DOCUMENTS, teacher, KeyWords(DOCUMENTS))


def test_targets_of_documents(targets):
    assert targets.of(DOCUMENTS[0]) == Target(4, [2], ["trees", "grow", "tall"])
    assert targets.of(DOCUMENTS[0]).marks().tolist() == [
        False, False, True, False
    ]  # fmt: skip
    assert targets.of(DOCUMENTS[1]) == Target(2, [1], ["birds", "fly"])
    assert targets.of(DOCUMENTS[2]) == Target(2, [0], [])
    assert targets.of(DOCUMENTS[3]) == Target(1, [0], ["unrelated", "words"])
    assert 0 < targets.counts.theta < 1
    assert targets.counts.none == targets.counts.no_summary == 1


def test_thresholds():
    key_words = KeyWords(DOCUMENTS)
    teacher = salience.salience_teacher("bm25", DOCUMENTS)
    given = DocumentTargets.from_teacher(DOCUMENTS, teacher, key_words, 0.99)
    assert given.counts.theta == 0.99 and given.counts.none == 3
    lead = DocumentTargets.from_teacher(
        DOCUMENTS, salience.salience_teacher("lead", DOCUMENTS), key_words
    )
    assert [one.salient for one in lead.targets.values()] == [[0]] * 4
    assert lead.counts.theta == 0 and lead.counts.full == 4
    with pytest.raises(InputError, match="no training document with a summary"):
        DocumentTargets.from_teacher(DOCUMENTS[2:3], teacher, key_words)


def test_a_document_that_has_changed(targets):
    longer = DOCUMENTS[1]._replace(sentences=["a"] * 3)
    with pytest.raises(
        InputError,
        match="'d2': found 3 sentences, but the targets of this run have 2:",
    ):
        targets.of(longer)
    with pytest.raises(InputError, match="'d9': found 2 .* no such document"):
        targets.of(DOCUMENTS[1]._replace(id="d9"))


def test_what_is_written_is_read(targets, tmp_path):
    path = tmp_path / "targets.json.gz"
    targets.write(path)
    again = DocumentTargets.from_file(path)
    assert again.targets == targets.targets and again.counts == targets.counts
    for damaged in (b"", path.read_bytes()[:40], b"{}"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="gz: cannot .*expected targets"):
            DocumentTargets.from_file(path)


def made(count: int) -> DocumentExamples:
    """Document n has n % 7 + 1 sentences, and n % 3 key words."""
    documents, targets = [], {}
    for n in range(count):
        sentences = [f"d{n} s{row} \u00e9" for row in range(n % 7 + 1)]
        documents.append(Document(f"d{n}", "", sentences, []))
        targets[f"d{n}"] = Target(
            len(sentences), [n % len(sentences)], [f"w{n}", "word"][: n % 3]
        )
    counts = salience.SalienceCounts(0.5)
    return DocumentExamples(iter(documents), DocumentTargets(targets, counts))


def lists(dataset: tf.data.Dataset) -> list[list[Any]]:
    return [[part.to_list() for part in batch] for batch in dataset]


def test_an_example():
    examples = made(5)
    (first, second) = examples.in_order(3)
    documents, salient, key_words = first
    assert documents.dtype == key_words.dtype == tf.string
    assert salient.dtype == tf.bool and len(examples) == 5
    assert documents.to_list()[1] == [
        "d1 s0 \u00e9".encode(), "d1 s1 \u00e9".encode()
    ]  # fmt: skip
    assert salient.to_list() == [[True], [False, True], [False, False, True]]
    assert key_words.to_list() == [[], [b"w1"], [b"w2", b"word"]]
    assert [part.shape[0] for part in second] == [2, 2, 2]
    assert examples.in_order(3).cardinality() == 2


def test_without_any_key_word():
    (batch,) = made(1).in_order()
    assert batch[2].to_list() == [[]] and batch[2].dtype == tf.string


def test_each_epoch_has_every_document_once_in_another_order():
    examples = made(103)
    per_epoch = 26
    both = lists(examples.batches(4, epochs=2, seed=1))
    assert len(both) == 2 * per_epoch
    orders = []
    for epoch in (both[:per_epoch], both[per_epoch:]):
        ids = [
            document[0].split()[0] for batch in epoch for document in batch[0]
        ]
        assert sorted(ids) == sorted(f"d{n}".encode() for n in range(103))
        orders.append(ids)
        sizes = [len(batch[0]) for batch in epoch]
        assert sorted(sizes)[0] == 3 and sizes.count(4) == per_epoch - 1
        # Documents of similar length are together.
        spans = [
            max(map(len, documents)) - min(map(len, documents))
            for documents, _, _ in epoch
        ]
        assert sum(spans) / len(spans) < 1
        # The batches are not in the order of their length.
        lengths = [len(documents[0]) for documents, _, _ in epoch]
        assert lengths != sorted(lengths)
    assert orders[0] != orders[1]
    assert lists(examples.batches(4, epochs=2, seed=1)) == both
    assert lists(examples.batches(4, epochs=1, seed=2)) != both[:per_epoch]


@pytest.mark.parametrize("excerpt", [0, 3])
@pytest.mark.parametrize("step", [1, 9, 10, 15, 20])
def test_a_run_resumes_at_any_training_step(step, excerpt):
    examples = made(37)
    options = {"epochs": 2, "seed": 3, "excerpt": excerpt}
    both = lists(examples.batches(4, **options))
    rest = examples.batches(4, first_step=step, **options)
    assert rest.cardinality() == 20 - step
    assert lists(rest) == both[step:]


def test_excerpts():
    """Each epoch draws other sentences, and keeps their order and marks."""
    examples = made(700)  # a hundred documents of each length from 1 to 7
    whole: dict[bytes, tuple[list[bytes], list[bool], list[bytes]]] = {}
    for batch in lists(examples.in_order(100)):
        for example in zip(*batch, strict=True):
            whole[example[0][0].split()[0]] = example
    epochs = []
    for epoch in range(2):
        batches = examples.batches(
            50, epochs=epoch + 1, seed=0, first_step=14 * epoch, excerpt=4
        )
        drawn = {}
        for batch in lists(batches):
            for sentences, salient, key_words in zip(*batch, strict=True):
                name = sentences[0].split()[0]
                everything, marks, words = whole[name]
                places = [everything.index(one) for one in sentences]
                assert places == sorted(set(places))
                assert salient == [marks[place] for place in places]
                assert key_words == words
                drawn[name] = places
        assert drawn.keys() == whole.keys()
        epochs.append(drawn)
    assert epochs[0] != epochs[1]
    longest = [
        places
        for drawn in epochs
        for name, places in drawn.items()
        if len(whole[name][0]) >= 4
    ]
    # floor(5 ** u), u uniform: the number is n with log_5((n + 1) / n).
    counts = np.bincount([len(places) for places in longest])
    expected = np.log([2, 3 / 2, 4 / 3, 5 / 4]) / np.log(5)
    np.testing.assert_allclose(counts[1:] / len(longest), expected, atol=0.05)
    assert {place for places in longest for place in places} == set(range(7))


def test_wrong_arguments():
    for make in (
        lambda: made(3).batches(0, epochs=1, seed=0),
        lambda: made(3).in_order(0),
    ):
        with pytest.raises(
            InputError, match="batch_size is .* number of 1 or more"
        ):
            make()
    with pytest.raises(
        InputError, match="excerpt is -1: expected a whole number of 0 or more"
    ):
        made(3).batches(epochs=1, seed=0, excerpt=-1)
    with pytest.raises(InputError, match="found no documents to train on"):
        made(0)
