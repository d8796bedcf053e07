"""Batches of pairs, triples and documents: hashed, shuffled and checked."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import VocabularyVectors
from keras_lstm_dssm.models.document_batch import (
    DocumentHasher,
    HashedDocuments,
    document_batches,
    sentence_lists,
)
from keras_lstm_dssm.models.pair_batch import (
    PairHasher,
    pair_batches,
    split_pairs,
)
from keras_lstm_dssm.models.pair_scorer import TripleHasher, triple_batches
from keras_lstm_dssm.models.text_model import is_hashed
from tests.models.small_keyvec import DOCUMENTS, EXAMPLES, SALIENT
from tests.models.small_matchers import hashed_words, small_scorer
from tests.models.small_towers import one_batch, two_tower

TEXTS = [str(number) for number in range(20)]
LISTS = {  # number of examples in a batch by default -> maker, and lists
    "pairs": (256, pair_batches, (TEXTS, TEXTS)),
    "triples": (128, triple_batches, ((TEXTS, TEXTS, TEXTS),)),
    "documents": (
        32, document_batches,
        (([[text] for text in TEXTS], [[True]] * 20, [[t] for t in TEXTS]),),
    ),
}  # fmt: skip


def rows(batches: tf.data.Dataset) -> list[str]:
    """Lists the texts of each example, which are equal in all its parts."""
    found = []
    for batch in batches:
        flat = [getattr(part, "flat_values", part) for part in batch]
        texts = [part.numpy() for part in flat if part.dtype == tf.string]
        for others in texts[1:]:
            np.testing.assert_array_equal(others, texts[0])
        found += texts[0].astype(str).tolist()
    return found


@pytest.mark.parametrize("kind", LISTS)
def test_lists_are_batched_and_shuffled_by_seed_anew_in_each_pass(kind):
    size, make, lists = LISTS[kind]
    batches = make(*lists, batch_size=8)
    assert [batch[0].shape[0] for batch in batches] == [8, 8, 4]
    assert batches.cardinality() == 3 and rows(batches) == TEXTS
    anew = {"reshuffle": True} if kind == "pairs" else {}
    shuffled = make(*lists, 8, shuffle_seed=1, **anew)
    first, second = rows(shuffled), rows(shuffled)
    assert Counter(first) == Counter(second) == Counter(TEXTS)
    assert first != second and TEXTS not in (first, second)
    assert rows(make(*lists, 8, shuffle_seed=1, **anew)) == first
    assert rows(make(*lists, 8, shuffle_seed=2, **anew)) != first
    many = [[*column] * 20 for column in (lists if anew else lists[0])]
    batch = next(iter(make(*(many if anew else [many]))))
    assert batch[0].shape[0] == size
    assert make(batches) is batches


def test_pairs_may_be_shuffled_once():
    once = pair_batches(TEXTS, TEXTS, shuffle_seed=1)
    assert rows(once) == rows(once) != TEXTS


QUERIES = ["hose", "lamp", "hose"]
TITLES = ["garden hose", "desk lamp", "hose, 50 ft"]
EXTRAS = {
    "negatives": tf.constant(
        [["hose clamp", "rope"], ["desk", "lamp oil"], ["rope"] * 2]
    ),
    "log_q": tf.constant([-1.0, -2.0, -3.0]),
}


def test_pairs_are_hashed_with_their_negatives():
    """Seven distinct titles; rope was given three times."""
    hasher = PairHasher(dssm.LSTMEncoder(4), dssm.LSTMEncoder(4))
    hashed = hasher.dataset(
        one_batch(QUERIES, TITLES, {"negatives": EXTRAS["negatives"]})
    )
    assert hasher.dataset(hashed) is hashed
    ((pairs,),) = hashed
    titles = pairs.document
    assert titles.text_index.shape == (3,) and pairs.candidates.shape == (3, 3)
    assert len(titles.lengths) == 7 and pairs.titles is None
    places = pairs.candidates.numpy()[:, 1:]
    assert places[0, 1] == places[2, 0] == places[2, 1]
    assert len({*places.flat, *titles.text_index.numpy()}) == 7


@pytest.mark.parametrize("tied", [False, True])
def test_a_dataset_is_hashed_as_its_batches(tied):
    """Computed in the first pass, and from the cache in the second."""
    hasher = two_tower(shared=tied).hasher
    expected = hasher(tf.constant(QUERIES), tf.constant(TITLES), EXTRAS)
    for (hashed,) in hasher.dataset(
        one_batch(QUERIES, TITLES, EXTRAS).repeat(2)
    ):
        orders = [w.trigram_order for w in (hashed.query, hashed.document)]
        assert None not in orders
        plain = hashed._replace(
            query=hashed.query._replace(trigram_order=None),
            document=hashed.document._replace(trigram_order=None),
        )
        tf.nest.map_structure(np.testing.assert_array_equal, plain, expected)


def test_encoders_with_equal_hashing_share_a_cache():
    encoder = dssm.LSTMEncoder(4)
    same = PairHasher(encoder, dssm.LSTMEncoder(8))
    assert same.query_cache is same.document_cache
    other = PairHasher(encoder, dssm.LSTMEncoder(4, oov_buckets=3))
    assert other.document_cache.oov_buckets == 3
    assert other.query_cache.oov_buckets == 0


def test_triples_are_hashed_by_side():
    hasher = TripleHasher(hashed_words())
    texts = (["a b", "c", "A  B"], ["d", "e f", "d"], ["e f", "d", "g"])
    hashed = hasher.dataset(triple_batches(texts))
    assert hasher.dataset(hashed) is hashed
    ((triples,),) = hashed
    assert triples.query.text_index.numpy().tolist() == [0, 1, 0]
    # The longest text is first.
    assert triples.document.lengths.numpy().tolist() == [2, 1, 1]
    assert triples.document.text_index.numpy().tolist() == [1, 0, 1, 0, 1, 2]


def ragged(rows: list[list[Any]], dtype: tf.DType = tf.string) -> Any:
    return tf.ragged.constant(rows, dtype, 1)


def hash_documents(
    max_sentences: int | None, documents: Any, salient: Any, key_words: Any
) -> HashedDocuments:
    words = VocabularyVectors(["hat", "red"], 2)
    hasher = DocumentHasher(words, words.lookup, max_sentences)
    flags = ragged(salient, tf.bool)
    return hasher(ragged(documents), flags, ragged(key_words))


def test_documents_are_hashed_with_each_distinct_sentence_once():
    batch = hash_documents(
        None,
        [["Red hat.", "Old", "red  HAT"], [], ["old"]],
        [[True, False, True], [], [True]],
        [["Red", "blue", "HAT"], ["red"], []],
    )
    sentences = batch.documents.sentences
    assert sentences.lengths.numpy().tolist() == [2, 1, 1]
    rows = sentences.text_index.numpy().tolist()
    assert rows[0] == rows[2] and rows[1] == rows[4] and len(set(rows)) == 3
    assert batch.documents.lengths.numpy().tolist() == [3, 1, 1]
    assert batch.documents.document.numpy().tolist() == [0, 0, 0, 1, 2]
    assert batch.salient.numpy().tolist() == [True, False, True, False, True]
    assert batch.key_words.numpy().tolist() == [1, 0, 1]  # blue is unknown
    assert batch.key_word_document.numpy().tolist() == [0, 0, 1]


def test_the_first_sentences_are_read():
    salient = [[False, True, True], [True]]
    batch = hash_documents(2, [["a", "b", "c"], ["d"]], salient, [[], []])
    assert batch.documents.lengths.numpy().tolist() == [2, 1]
    assert batch.salient.numpy().tolist() == [False, True, True]


def test_hashed_documents_pass_through():
    words = VocabularyVectors(["hat", "red"], 2)
    hasher = DocumentHasher(words, words.lookup, None)
    hashed = hasher.dataset(document_batches(EXAMPLES, 2))
    assert is_hashed(hashed.element_spec, HashedDocuments)
    assert document_batches(hashed) is hashed
    assert hasher.dataset(hashed) is hashed


def test_documents_become_lists_of_sentences():
    documents = ["Red. Blue.", b"One", ["A b. C", b"d"], [], ""]
    assert sentence_lists(iter(documents)) == [
        [b"Red.", b"Blue."], [b"One"], [b"A b. C", b"d"], [], [b""],
    ]  # fmt: skip


def test_parts_with_different_numbers_of_rows():
    """Else rows are trained with the texts of others, in silence."""
    bolts = [tf.fill([rows], "bolt") for rows in (12, 4, 20)]
    tied, apart = (two_tower(shared=shared).hasher for shared in (True, False))
    triples = TripleHasher(hashed_words())
    words = apart.query_hashing.distinct
    hashed = words(tf.constant(QUERIES)), words(tf.constant(TITLES[:1]))
    extras = {"negatives": tf.fill([5, 2], "nut"), "log_q": tf.zeros([3])}
    sizes = "12 queries, 12 documents, 5 negatives, 3 log_q"
    for found, call in (
        *(
            row
            for hasher in (tied, apart)
            for row in (
                ("1 queries, 12 documents",
                 lambda hash=hasher: hash(bolts[0][:1], bolts[0])),
                (sizes, lambda hash=hasher: hash(bolts[0], bolts[0], extras)),
                ("3 queries, 1 documents", lambda hash=hasher: hash(*hashed)),
            )
        ),
        ("12 queries, 4 positives, 20 negatives", lambda: triples(*bolts)),
        ("1 documents, 2 salient, 3 key_words", lambda: hash_documents(
            None, [["a"]], [[True], [False]], [[], ["hat"], ["red"]])),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"of a batch: found {found}$"):
            call()
    with pytest.raises(tf.errors.InvalidArgumentError, match="one value for"):
        hash_documents(None, [["a", "b"]], [[True]], [[]])
    # In a dataset, the numbers are known only when it is read.
    data = tf.data.Dataset.from_generator(
        lambda: [tuple(bolts)],
        output_signature=(tf.TensorSpec([None], tf.string),) * 3,
    )
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=r"found queries, positives, negatives:\] \[12 4 20\]",
    ):
        list(triples.dataset(data))
    model = two_tower()
    for call in (model.fit, model.predict):
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"a batch: found queries, documents:\] \[12 4\]",
        ):
            call(data.map(lambda *parts: parts[:2]), verbose=0)
    one_document, scorer = (QUERIES, TITLES[:1]), small_scorer()
    for call in (
        lambda: model(one_document),
        lambda: scorer(one_document),
        lambda: scorer.predict(one_batch(*one_document), verbose=0),
    ):
        with pytest.raises(InputError, match="found 3 queries, 1 documents"):
            call()


def test_the_last_pairs_are_split_off():
    lower, upper = list("abcde"), list("ABCDE")
    x, y, (queries, documents) = split_pairs(lower, upper, 0.4)
    texts = [part.numpy().tolist() for part in (x, y, queries, documents)]
    assert texts == [[b"a", b"b", b"c"], [b"A", b"B", b"C"],
                     [b"d", b"e"], [b"D", b"E"]]  # fmt: skip
    for share in (0.01, 1.0, -0.5):
        with pytest.raises(InputError, match=f"split={share} of 5 pairs lea"):
            split_pairs(lower, upper, share)
    with pytest.raises(InputError, match="two lists, not a dataset: give val"):
        split_pairs(one_batch(lower, upper), None, 0.5)


def test_wrong_data_is_explained():
    flat = tf.data.Dataset.from_tensor_slices((["a"], [True], ["b"])).batch(1)
    rolled = np.roll(np.array(SALIENT, object), 1)
    for message, call in (
        ("3 queries but 2 documents; give one",
         lambda: pair_batches(QUERIES, TITLES[:2])),
        ("a dataset of .query, document.",
         lambda: pair_batches(tf.data.Dataset.from_tensors(QUERIES))),
        ("three lists in a tuple; got tuple of 2 parts",
         lambda: document_batches(EXAMPLES[:2])),
        ("got NoneType", lambda: document_batches(None)),
        ("4 documents, 4 lists of salient",
         lambda: document_batches((DOCUMENTS, SALIENT, [[]]))),
        ("document 0 has 5 sentences and 7 values in salient",
         lambda: document_batches((DOCUMENTS, rolled, EXAMPLES[2]))),
        (r"with .ragged_batch\(32\)", lambda: document_batches(flat)),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            call()


@pytest.mark.parametrize(("extras", "message"), [
    ({"negatives": tf.constant(["rope"] * 3)}, "a dict of negatives"),
    ({"negatives": tf.zeros([3, 1])}, "expected a dict of negatives"),
    ({"log_q": tf.zeros([3], tf.float64)}, "expected a dict of neg"),
    ({"weights": tf.zeros([3])}, "expected a dict of negatives"),
])  # fmt: skip
def test_extras_of_another_form(extras, message):
    with pytest.raises(InputError, match=message):
        pair_batches(one_batch(QUERIES, TITLES, extras))


def test_word_batches_take_no_extras():
    """They would be lost: a `WordBatch` has no place for other texts."""
    model = two_tower()
    hashed = [
        tower.trigrams.distinct(tf.constant(texts))
        for tower, texts in zip(model.towers, (QUERIES, TITLES), strict=True)
    ]
    for name, values in EXTRAS.items():
        with pytest.raises(InputError, match="need batches of strings, not of"):
            model.fit(one_batch(*hashed, {name: values}), verbose=0)
    found = model.evaluate(one_batch(*hashed), verbose=0)
    expected = model.evaluate(one_batch(QUERIES, TITLES), verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_tf_data_tunes_nothing():
    """Else `fit` may wait at its end for the autotuning thread of `tf.data`."""
    hashed = two_tower()._hashed(pair_batches(QUERIES, TITLES))
    assert hashed.options().autotune.enabled is False
