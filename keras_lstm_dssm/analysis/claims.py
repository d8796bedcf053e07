"""Tests claims of Palangi et al. 2016: compares encoders with chance."""

import string
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import keras
import numpy as np
from bm25s.stopwords import STOPWORDS_EN_PLUS

from keras_lstm_dssm.analysis.words import (
    ACTIVE_CELLS,
    KEYWORD_SHARE,
    LEAST_CHANGE,
    SIDES,
    TOPIC_CELLS,
    active_cells,
    assigned,
    each_change,
    keywords,
)
from keras_lstm_dssm.encoders.activations import each_activations, words_of
from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation.bm25 import count_matrix
from keras_lstm_dssm.evaluation.significance import randomisation_test


class ChanceComparison(NamedTuple):
    """A model's choice of words or cells, compared with random choices."""

    value: float  # a measure of the model's choice
    chance: float  # the mean of the measure over random choices
    p: float  # the two-sided p-value
    number: int  # the number of texts or words that are compared


NO_COMPARISON = ChanceComparison(0.0, 0.0, 1.0, 0)


def compare_with_draws(
    draws: np.ndarray, value: float, number: int
) -> ChanceComparison:
    """Compares a value with `draws` `[n]`, the values of n random choices."""
    above = (1 + np.sum(draws >= value)) / (1 + len(draws))
    below = (1 + np.sum(draws <= value)) / (1 + len(draws))
    p = min(1.0, 2 * float(min(above, below)))
    return ChanceComparison(value, float(draws.mean()), p, number)


_STOP_WORDS = frozenset(STOPWORDS_EN_PLUS)
_CHANCE_DRAWS = 2000


def is_stop_word(words: Sequence[str]) -> np.ndarray:
    """Returns which words, without punctuation, are stop words of NLTK."""
    bare = (word.strip(string.punctuation) for word in words)
    return np.array([word in _STOP_WORDS for word in bare], bool)


def stop_word_share(
    # Each argument has an array for each text, bool `[words]`.
    stop: Sequence[np.ndarray],  # whether a word is a stop word
    chosen: Sequence[np.ndarray],  # whether the model chose the word
    candidates: Sequence[np.ndarray],  # whether the word could be chosen
) -> ChanceComparison:
    """Computes the share of stop words among the words that a model chose."""
    sizes = np.array(
        [
            [
                np.sum(is_stop & is_candidate),
                np.sum(~is_stop & is_candidate),
                np.sum(is_chosen),
                np.sum(is_stop & is_chosen),
            ]
            for is_stop, is_chosen, is_candidate in zip(
                stop, chosen, candidates, strict=True
            )
            if is_chosen.any()
        ]
    ).reshape(-1, 4)
    stop_words, others, sample_sizes, chosen_stop_words = sizes.T
    total = int(sample_sizes.sum())
    if not total:
        return NO_COMPARISON
    # A random choice takes as many candidates of each text as the model did.
    random_counts = np.random.default_rng(0).hypergeometric(
        stop_words, others, sample_sizes, (_CHANCE_DRAWS, len(sizes))
    )
    return compare_with_draws(
        random_counts.sum(axis=1) / total,
        chosen_stop_words.sum() / total,
        total,
    )


_RANDOM_CHOICES = 4  # number of random choices of words for each text


def remaining_cosine(
    encoder: TextEncoder,
    texts: Sequence[Sequence[str]],
    # Unit vectors `[texts, dimension]`: text i is compared with row i.
    others: np.ndarray,
    chosen: Sequence[np.ndarray],  # see `stop_word_share`
    candidates: Sequence[np.ndarray],
) -> ChanceComparison:
    """Computes the share of the cosine that remains with only chosen words.

    The cosine is between a text and the text's row of `others`.
    """
    # Leaves out texts in which every random choice equals the model's choice.
    rows = [
        row
        for row in range(len(texts))
        if 0 < chosen[row].sum() < candidates[row].sum()
    ]
    if not rows:
        return NO_COMPARISON
    random = np.random.default_rng(0)
    shortened = []
    for row in rows:
        masks = [np.ones(len(texts[row]), bool), chosen[row]]
        for _ in range(_RANDOM_CHOICES):
            mask = np.zeros(len(texts[row]), bool)
            positions = np.flatnonzero(candidates[row])
            mask[random.choice(positions, chosen[row].sum(), False)] = True
            masks.append(mask)
        words = np.array(texts[row], object)
        shortened += [" ".join(words[mask]) for mask in masks]
    vectors = encoder.encode(shortened).reshape(
        len(rows), 2 + _RANDOM_CHOICES, -1
    )
    cosines = np.einsum("nkd,nd->nk", vectors, others[rows])
    whole, value = cosines[:, 0], cosines[:, 1]
    chance = cosines[:, 2:].mean(axis=1)
    p = randomisation_test(value - chance, 10_000, 0)[0]
    return ChanceComparison(
        float(value.mean() / whole.mean()),
        float(chance.mean() / whole.mean()),
        float(p),
        len(rows),
    )


_LEAST_CONTEXTS = 3
_MOST_WORDS = 1500
_DRAWS = 499


class WordAssignments(NamedTuple):
    """Assignments of `word[i]` to the cell `active[text[i], slot[i]]`."""

    active: np.ndarray  # int `[texts, slots]`: active cells of each text
    text: np.ndarray  # int `[n]`: index of a row of `active`
    slot: np.ndarray  # int `[n]`: index of a column of `active`
    word: np.ndarray  # str `[n]`
    cells: int  # number of cells of the encoder, active or not


def assign_words(
    encoder: TextEncoder, texts: Sequence[str], cells: int, change: float
) -> WordAssignments:
    """Assigns words to active cells of their texts, as `words.topics` does."""
    active: list[list[int]] = []
    assignments: list[tuple[int, int, str]] = []
    cell_count = 0
    for text, states in enumerate(each_activations(encoder, texts)):
        cell_count = len(states.recurrent_vector)
        active.append([])
        for network in states.directions:
            words = assigned(network, cells, change)
            for cell, _ in active_cells(network, cells):
                assignments += [
                    (text, len(active[text]), states.words[position])
                    for position in np.flatnonzero(words[:, cell])
                ]
                active[text].append(cell + network.offset)
    text_rows, slots, slot_words = (
        zip(*assignments, strict=True) if assignments else ((), (), ())
    )
    return WordAssignments(
        np.array(active),
        np.array(text_rows, int),
        np.array(slots, int),
        np.array(slot_words, object),
        cell_count,
    )


def context_vectors(
    contexts: Sequence[Sequence[str]],  # each has words that occur together
) -> Mapping[str, np.ndarray]:
    """Computes unit vectors of words by latent semantic analysis.

    Source: Deerwester et al. 1990, "Indexing by Latent Semantic Analysis".
    """
    text = import_optional("sklearn.feature_extraction.text", "analysis")
    decomposition = import_optional("sklearn.decomposition", "analysis")
    counts = Counter(word for words in contexts for word in set(words))
    if sum(count >= _LEAST_CONTEXTS for count in counts.values()) < 2:
        raise InputError(
            f"found fewer than two words that occur in {_LEAST_CONTEXTS} or "
            f"more of {len(contexts)} contexts: give data with more clicks"
        )
    vectorizer = text.TfidfVectorizer(analyzer=tuple, min_df=_LEAST_CONTEXTS)
    table = vectorizer.fit_transform(contexts)
    size = min(100, min(table.shape) - 1)
    svd = decomposition.TruncatedSVD(size, random_state=0).fit(table)
    vectors = svd.components_.T * svd.singular_values_
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = (vectors / np.maximum(lengths, 1e-12)).astype(np.float32)
    return {word: vectors[row] for word, row in vectorizer.vocabulary_.items()}


def coherence(
    encoder: TextEncoder,
    assignments: WordAssignments,
    word_vectors: Mapping[str, np.ndarray],
    same_trigrams: bool = True,  # include pairs that share a letter trigram
) -> ChanceComparison:
    """Computes the mean cosine of two different words assigned to one cell."""
    from scipy import sparse

    words, word_rows, counts = np.unique(
        assignments.word.astype(str), return_inverse=True, return_counts=True
    )
    known = np.array([word in word_vectors for word in words], bool)
    if not known.any():
        return NO_COMPARISON
    frequent = np.argsort(-np.where(known, counts, 0), kind="stable")[
        :_MOST_WORDS
    ]
    frequent = frequent[known[frequent]]
    new_rows = np.full(len(words), -1)
    new_rows[frequent] = np.arange(len(frequent))
    used = new_rows[word_rows] >= 0
    text, slot = assignments.text[used], assignments.slot[used]
    column = new_rows[word_rows][used]
    pairs = 1 - np.eye(len(frequent), dtype=np.float32)
    if not same_trigrams:
        pairs[_share_trigram(encoder, words[frequent])] = 0
    vectors = np.array([word_vectors[word] for word in words[frequent]])
    similarity = pairs * (vectors @ vectors.T)

    def mean(active: np.ndarray) -> float:
        # `table[c, w]` is how often word w is assigned to cell c.
        table = sparse.csr_array(
            (np.ones(len(column), np.float32), (active[text, slot], column)),
            shape=(assignments.cells, len(frequent)),
        )
        total = table.multiply(table @ pairs).sum()
        return float(table.multiply(table @ similarity).sum() / max(total, 1))

    random = np.random.default_rng(0)
    active = assignments.active
    # A random choice gives each text the active cells of a random text.
    shuffled = [mean(random.permutation(active)) for _ in range(_DRAWS)]
    return compare_with_draws(np.array(shuffled), mean(active), len(frequent))


def _share_trigram(encoder: TextEncoder, words: np.ndarray) -> np.ndarray:
    """Returns which words share a letter trigram, bool `[words, words]`."""
    hashing = encoder.trigrams
    ids = [list(chain(*text)) for text in hashing(list(words)).to_list()]
    table = count_matrix(ids, hashing.size)
    return (table @ table.T).toarray() > 0


CLAIM_LABELS = {
    "stop_words_of_least_effect": (
        "Share of stop words among the words with the least effect (one word "
        "of each text)"
    ),
    "stop_words_unassigned": (
        "Share of stop words among the words assigned to no active cell"
    ),
    "stop_words_keywords": "Share of stop words among the keywords",
    "cosine_of_strong_half": (
        "Share of the pair's cosine that remains with half of the words, those "
        "of largest effect"
    ),
    "cosine_of_keywords": (
        "Share of the pair's cosine that remains with only the keywords"
    ),
    "likeness": "Mean cosine of the words of one cell",
    "likeness_other_spelling": (
        "Mean cosine of the words of one cell that share no letter trigram"
    ),
}


class ClaimResult(NamedTuple):
    """The measure of a claim for one encoder, compared with chance."""

    claim: str  # a key of `CLAIM_LABELS`
    side: str  # "query" or "document"
    model: str  # "trained" or "untrained" (random weights)
    comparison: ChanceComparison


def measure_claims(
    model: Any,
    pairs: Sequence[tuple[str, str]],  # pairs (query, title)
    contexts: Sequence[str],  # texts for `context_vectors`
    cells: int = ACTIVE_CELLS,  # for the last three arguments see `keywords`
    change: float = LEAST_CHANGE,
    share: float = KEYWORD_SHARE,
) -> list[ClaimResult]:
    """Measures if encoders attenuate stop words, and if cells have topics."""
    if not pairs:
        raise InputError(
            "found no query with a relevant document, expected one or more to "
            "measure the claims with: give other data"
        )
    keras.utils.set_random_seed(0)
    # The untrained copy shows which effects do not come from training.
    models = {"trained": model, "untrained": untrained_copy(model)}
    queries, titles = (list(side) for side in zip(*pairs, strict=True))
    recurrent = all(tower.networks for tower in model.towers)
    if recurrent:
        word_vectors = context_vectors(words_of(model.query_encoder, contexts))
    results = []
    for name, measured in models.items():
        towers = (
            (measured.query_encoder, queries),
            (measured.document_encoder, titles),
        )
        vectors = [encoder.encode(texts) for encoder, texts in towers]
        for index, (encoder, texts) in enumerate(towers):
            others = vectors[1 - index] if measured is model else None
            comparisons = dict(
                _word_comparisons(encoder, texts, others, cells, change, share)
            )
            if recurrent:
                assignments = assign_words(encoder, texts, TOPIC_CELLS, change)
                comparisons |= {
                    "likeness": coherence(encoder, assignments, word_vectors),
                    "likeness_other_spelling": coherence(
                        encoder, assignments, word_vectors, same_trigrams=False
                    ),
                }
            results += [
                ClaimResult(claim, SIDES[index], name, comparison)
                for claim, comparison in comparisons.items()
                if comparison.number
            ]
    return results


def untrained_copy(model: Any) -> Any:
    """Returns a copy of a `TwoTower`, but with random trainable weights."""
    copy = type(model).from_config(model.get_config())
    for random, trained in zip(copy.towers, model.towers, strict=True):
        for weight, value in zip(random.weights, trained.weights, strict=True):
            # Asks the copy's weight, because layers of `model` may be frozen.
            if not weight.trainable:
                weight.assign(value)
    return copy


def _word_comparisons(
    encoder: TextEncoder,
    texts: Sequence[str],
    others: np.ndarray | None,
    cells: int,
    change: float,
    share: float,
) -> Iterator[tuple[str, ChanceComparison]]:
    split_texts = words_of(encoder, texts)
    stop = [is_stop_word(words) for words in split_texts]
    all_words = [np.ones(len(words), bool) for words in split_texts]
    ranks = [
        np.argsort(np.argsort(effects, kind="stable"))
        for effects in each_change(encoder, split_texts)
    ]
    least = [(rank == 0) & (len(rank) > 1) for rank in ranks]
    strong = [rank >= len(rank) // 2 for rank in ranks]
    yield "stop_words_of_least_effect", stop_word_share(stop, least, all_words)
    if others is not None:
        yield (
            "cosine_of_strong_half",
            remaining_cosine(encoder, split_texts, others, strong, all_words),
        )
    if not encoder.networks:
        return
    with_count, unassigned, is_keyword = [], [], []
    for states in each_activations(encoder, texts):
        words = keywords(states, cells, change, share)
        counts = [[n for n in w.counts if n is not None] for w in words]
        with_count.append(np.array([c != [] for c in counts]))
        unassigned.append(np.array([c != [] and not any(c) for c in counts]))
        is_keyword.append(np.array([word.keyword for word in words]))
    yield "stop_words_unassigned", stop_word_share(stop, unassigned, with_count)
    yield "stop_words_keywords", stop_word_share(stop, is_keyword, with_count)
    if others is not None:
        yield (
            "cosine_of_keywords",
            remaining_cosine(
                encoder, split_texts, others, is_keyword, with_count
            ),
        )
