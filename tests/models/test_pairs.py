"""Pairs: batched, shuffled, split and hashed; given negatives and log q."""

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.pair_batch import (
    PairHasher,
    log_q_sums,
    pair_batches,
    split_pairs,
)

QUERIES = ["hose", "lamp", "hose"]
TITLES = ["garden hose", "desk lamp", "hose, 50 ft"]
NEGATIVES = [["hose clamp", "rope"], ["desk", "lamp oil"], ["rope"] * 2]
LOG_Q = np.log([[0.5, 0.1, 0.2], [0.3, 0.1, 0.1], [0.2, 0.2, 0.2]])
GAMMA = 10.0


def batch(**extras: object) -> tuple:
    return tf.constant(QUERIES), tf.constant(TITLES), dict(extras)


def negatives() -> tf.Tensor:
    return tf.constant(NEGATIVES)


def log_q() -> tf.Tensor:
    return tf.constant(LOG_Q, tf.float32)


def two_tower(tied: bool, kind: str = "in_batch", n: int = 2) -> dssm.TwoTower:
    query = dssm.LSTMEncoder(8)
    document = query if tied else dssm.LSTMEncoder(8)
    model = dssm.TwoTower(query, document, negatives=kind, n=n)
    model.compile(dssm.NesterovMomentum(0.1), dssm.CosineSoftmax(GAMMA))
    return model


def cosines(model: dssm.TwoTower, texts: list[str]) -> np.ndarray:
    return (
        model.query_encoder.encode(QUERIES)
        @ model.document_encoder.encode(texts).T
    )


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("corrected", [False, True])
def test_the_loss_against_plain_numpy(tied, corrected):
    """Every distinct title of the batch, given ones too, is a candidate."""
    model = two_tower(tied)
    q_of = {t: q for t, q in zip(TITLES, LOG_Q[:, 0], strict=True)}
    for row, q in zip(NEGATIVES, LOG_Q[:, 1:], strict=True):
        q_of.update(zip(row, q, strict=True))
    texts = list(q_of)
    logits = GAMMA * cosines(model, texts)
    extras = {"negatives": negatives()}
    if corrected:
        logits -= [q_of[text] for text in texts]
        extras["log_q"] = log_q()
    own = logits[range(3), [texts.index(t) for t in TITLES]]
    expected = (np.log(np.exp(logits).sum(axis=1)) - own).mean()
    loss = model.test_step(batch(**extras))["loss"]
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    trained = model.train_step(batch(**extras))["loss"]
    # The mean of the step before and this one, which has the same loss.
    assert float(trained) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_beside_drawn_negatives_each_row_has_its_own(tied):
    """One row: nothing can be drawn, so that only the given ones count."""
    model = two_tower(tied, "random")
    found = model.test_step(
        (
            tf.constant(QUERIES[:1]),
            tf.constant(TITLES[:1]),
            {"negatives": tf.constant([["rope", TITLES[0]]])},
        )
    )
    own, rope = GAMMA * cosines(model, [TITLES[0], "rope"])[0]
    # The clicked title among them is no negative.
    expected = np.log1p(np.exp(rope - own))
    # float32 rounds 1 + exp to a multiple of 1.2e-7.
    assert float(found["loss"]) == pytest.approx(expected, rel=1e-5, abs=3e-7)


def test_fit_takes_such_batches_and_learns_to_tell_them_apart():
    model = two_tower(tied=False)
    data = tf.data.Dataset.from_tensors(batch(negatives=negatives()))
    model.fit(data.repeat(30), epochs=1, verbose=0)
    for row, (title, others) in enumerate(zip(TITLES, NEGATIVES, strict=True)):
        own, *rest = cosines(model, [title, *others])[row]
        assert own > max(rest) + 0.3


def test_a_batch_without_log_q_is_not_corrected():
    model = two_tower(tied=True)
    zeros = batch(log_q=tf.zeros([3]))
    one, other = (
        float(model.test_step(pairs)["loss"]) for pairs in (batch(), zeros)
    )
    assert one == pytest.approx(other, rel=1e-6)


def test_log_q_of_distinct_documents():
    sums, counts = log_q_sums(
        tf.constant([[-1.0, -2.0], [-3.0, -2.0]]),
        tf.constant([[0, 3], [1, 3]]),
        tf.constant(5),
    )
    np.testing.assert_allclose(sums, [-1, -3, 0, -4, 0])
    np.testing.assert_allclose(counts, [1, 1, 0, 2, 0])


def test_log_q_is_for_in_batch_negatives():
    model = two_tower(tied=False, kind="random")
    with pytest.raises(
        InputError, match="corrects CosineSoftmax with in-batch"
    ):
        model.test_step(batch(negatives=negatives(), log_q=log_q()))


@pytest.mark.parametrize(
    "extras",
    [
        {"negatives": tf.constant(["rope"] * 3)},
        {"negatives": tf.zeros([3, 1])},
        {"log_q": tf.zeros([3], tf.float64)},
        {"weights": tf.zeros([3])},
    ],
)
def test_extras_of_another_form(extras):
    data = tf.data.Dataset.from_tensors(batch(**extras))
    with pytest.raises(InputError, match="expected a dict of negatives"):
        two_tower(tied=False).fit(data, verbose=0)


def test_hashed_once_and_passed_on():
    encoder = dssm.LSTMEncoder(4)
    hasher = PairHasher(encoder, dssm.LSTMEncoder(4))
    data = tf.data.Dataset.from_tensors(batch(negatives=negatives()))
    hashed = hasher.dataset(data)
    assert hasher.dataset(hashed) is hashed
    ((pairs,),) = hashed
    titles = pairs.document
    assert titles.text_index.shape == (3,) and pairs.candidates.shape == (3, 3)
    # Seven distinct titles; rope was given three times.
    assert len(titles.lengths) == 7 and pairs.titles is None
    places = pairs.candidates.numpy()[:, 1:]
    assert places[0, 1] == places[2, 0] == places[2, 1]
    assert len({*places.flat, *titles.text_index.numpy()}) == 7


def test_word_batches_take_no_extras():
    """They would be lost: a `WordBatch` has no place for other texts."""
    model = two_tower(tied=False)
    hashed = [
        tower.trigrams.distinct(tf.constant(texts))
        for tower, texts in zip(model.towers, (QUERIES, TITLES), strict=True)
    ]
    for extras in ({"negatives": negatives()}, {"log_q": log_q()}):
        data = tf.data.Dataset.from_tensors((*hashed, extras))
        with pytest.raises(InputError, match="need batches of strings, not of"):
            model.fit(data, verbose=0)
    model.evaluate(tf.data.Dataset.from_tensors(tuple(hashed)), verbose=0)


LOWER, UPPER = list("abcde"), list("ABCDE")


def pairs_of(dataset: tf.data.Dataset) -> list[tuple[bytes, bytes]]:
    flat = dataset.unbatch().as_numpy_iterator()
    return [(query, document) for query, document in flat]


def test_lists_become_batches():
    dataset = pair_batches(LOWER, UPPER, batch_size=2)
    assert [len(query) for query, _ in dataset] == [2, 2, 1]
    assert dataset.cardinality() == 3
    expected = [(q.encode(), q.upper().encode()) for q in LOWER]
    assert pairs_of(dataset) == expected


def test_shuffles_by_seed_and_anew_each_epoch_when_asked_to():
    texts = [str(number) for number in range(40)]
    dataset = pair_batches(texts, texts, shuffle_seed=1, reshuffle=True)
    first, second = pairs_of(dataset), pairs_of(dataset)
    assert sorted(first) == sorted(second)
    assert first != second
    assert all(query == document for query, document in first)
    once = pair_batches(texts, texts, shuffle_seed=1)
    assert pairs_of(once) == pairs_of(once) != sorted(first)
    other = pair_batches(texts, texts, shuffle_seed=2)
    assert sorted(pairs_of(other)) == sorted(first)
    assert pairs_of(other) != pairs_of(once)


def test_a_dataset_stays_as_it_is():
    dataset = tf.data.Dataset.from_tensors((LOWER, UPPER))
    assert pair_batches(dataset) is dataset


def test_wrong_data():
    with pytest.raises(InputError, match="5 queries but 4 documents; give one"):
        pair_batches(LOWER, UPPER[:4])
    with pytest.raises(InputError, match="a dataset of .query, document."):
        pair_batches(tf.data.Dataset.from_tensors(LOWER))


def test_the_last_pairs_are_split_off():
    x, y, (queries, documents) = split_pairs(LOWER, UPPER, 0.4)
    texts = [part.numpy().tolist() for part in (x, y, queries, documents)]
    assert texts == [[b"a", b"b", b"c"], [b"A", b"B", b"C"],
                     [b"d", b"e"], [b"D", b"E"]]  # fmt: skip
    for share in (0.01, 1.0, -0.5):
        with pytest.raises(InputError, match=f"split={share} of 5 pairs lea"):
            split_pairs(LOWER, UPPER, share)
    with pytest.raises(InputError, match="two lists, not a dataset: give val"):
        split_pairs(tf.data.Dataset.from_tensors((LOWER, UPPER)), None, 0.5)


@pytest.mark.parametrize("tied", [False, True])
def test_a_dataset_is_hashed_as_its_batches(tied):
    """Computed in the first pass, and from the cache in the second."""
    hasher = two_tower(tied).hasher
    given = batch(negatives=negatives(), log_q=log_q())
    dataset = tf.data.Dataset.from_tensors(given).repeat(2)
    expected = hasher(*given)
    for (hashed,) in hasher.dataset(dataset):
        orders = [w.trigram_order for w in (hashed.query, hashed.document)]
        assert None not in orders
        plain = hashed._replace(
            query=hashed.query._replace(trigram_order=None),
            document=hashed.document._replace(trigram_order=None),
        )
        tf.nest.map_structure(np.testing.assert_array_equal, plain, expected)


@pytest.mark.parametrize("tied", [False, True])
def test_parts_of_a_batch_with_different_numbers_of_rows(tied):
    """Else each row is trained with the texts of another one, in silence."""
    model = two_tower(tied)
    sizes = {"queries": 12, "documents": 12, "negatives": 5, "log_q": 3}
    queries, documents = tf.fill([12], "bolt"), tf.fill([12], "hex bolt")
    extras = {"negatives": tf.fill([5, 2], "nut"), "log_q": tf.zeros([3])}
    hashed = tuple(
        tower.trigrams.distinct(tf.constant(texts))
        for tower, texts in zip(
            [model.query_encoder, model.document_encoder],
            (QUERIES, TITLES[:1]),
            strict=True,
        )
    )
    for parts, found in (
        ((queries[:1], documents), "1 queries, 12 documents"),
        (
            (queries, documents, extras),
            ", ".join(f"{number} {name}" for name, number in sizes.items()),
        ),
        (hashed, "3 queries, 1 documents"),
    ):
        with pytest.raises(InputError, match=f"of a batch: found {found}$"):
            model.hasher(*parts)
    # From here on the numbers are known only when the dataset is read.
    data = tf.data.Dataset.from_generator(
        lambda: [(QUERIES, TITLES[:1])],
        output_signature=(tf.TensorSpec([None], tf.string),) * 2,
    )
    for call in (model.fit, model.predict):
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"a batch: found queries, documents:\] \[3 1\]",
        ):
            call(data, verbose=0)
    with pytest.raises(InputError, match="found 3 queries, 1 documents"):
        model((QUERIES, TITLES[:1]))


def test_encoders_with_equal_hashing_share_a_cache():
    encoder = dssm.LSTMEncoder(4)
    same = PairHasher(encoder, dssm.LSTMEncoder(8))
    assert same.query_cache is same.document_cache
    other = PairHasher(encoder, dssm.LSTMEncoder(4, oov_buckets=3))
    assert other.document_cache.oov_buckets == 3
    assert other.query_cache.oov_buckets == 0


def test_training_with_a_cache_equals_training_without():
    plain, caching = two_tower(False), two_tower(False)
    caching.set_weights(plain.get_weights())
    dataset = tf.data.Dataset.from_tensors(batch(negatives=negatives()))
    dataset = dataset.repeat(3)
    plain.fit(dataset.map(lambda *b: (plain.hasher(*b),)), verbose=0)
    caching.fit(dataset, verbose=0)
    for one, other in zip(
        plain.get_weights(), caching.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_tf_data_tunes_nothing():
    """Else `fit` may wait at its end for the autotuning thread of `tf.data`."""
    hashed = two_tower(False)._hashed(pair_batches(QUERIES, TITLES))
    assert hashed.options().autotune.enabled is False
