"""Misspelled queries, and synthetic pairs from titles."""

from collections import defaultdict

import pytest

from keras_lstm_dssm.data import title_pairs
from keras_lstm_dssm.data.augmentation import (
    KEYS_AROUND,
    misspell,
)
from keras_lstm_dssm.errors import InputError

TEXT = "interior wood glue for 8 oz bottles"
TITLES = ["a b c d e f", "lamp", "garden hose"]


def edits(word: str) -> dict[str, set[str]]:
    """Everything one edit can make of a word, in another way."""
    found: dict[str, set[str]] = defaultdict(set)
    for i, letter in enumerate(word):
        found["delete"].add(word[:i] + word[i + 1 :])
        for key in KEYS_AROUND.get(letter, ""):
            found["insert"].add(word[: i + 1] + key + word[i + 1 :])
            found["substitute"].add(word[:i] + key + word[i + 1 :])
        swapped = word[:i] + word[i : i + 2][::-1] + word[i + 2 :]
        found["transpose"] |= {swapped} - {word}
    return found


def misspelled_words(pairs) -> list[str]:
    """Returns the words of queries that are not in their titles."""
    return [
        word
        for query, title in pairs
        for word in query.split()
        if word not in title.split()
    ]


def test_keyboard():
    assert set(KEYS_AROUND["g"]) == set("tyfhvb")
    assert set(KEYS_AROUND["q"]) == set("12wa")
    assert all(a in KEYS_AROUND[b] for a in KEYS_AROUND for b in KEYS_AROUND[a])


def test_each_kind_of_edit_is_made_once_in_words_of_three_letters():
    possible = edits("plumber")
    found = {misspell("plumber", 1.0, seed) for seed in range(300)}
    assert found <= set().union(*possible.values())
    assert all(found & words for words in possible.values())
    for word, other in zip(
        TEXT.split(), misspell(TEXT, 1.0).split(), strict=True
    ):
        expected = set().union(*edits(word).values())
        assert other == word if len(word) < 3 else other in expected


def test_rate_is_the_share_of_words():
    words = [f"word{i}" for i in range(4000)]
    hit = sum(misspell(word, 0.2) != word for word in words)
    assert 0.18 < hit / 4000 < 0.22
    assert misspell(TEXT, 0.0) == TEXT
    # Lower rates make some of the same errors.
    text = " ".join(words[:100])
    few, many = misspell(text, 0.1).split(), misspell(text, 0.3).split()
    assert few != many
    for word, one, other in zip(text.split(), few, many, strict=True):
        assert one in (word, other)


@pytest.mark.parametrize("text", ["", "aaa", "ab", "слово", "日本語"])
def test_any_text(text):
    typed = misspell(text, 1.0)
    assert (typed == text) == (len(text) < 3)


def test_pairs_hold_some_words_of_a_title_in_order():
    pairs = list(title_pairs(TITLES, 200, misspelled=0.0))
    assert len(pairs) == 400
    lengths = set()
    for query, title in pairs[:200]:
        words = query.split()
        assert title == TITLES[0] and words == sorted(set(words))
        assert set(words) <= set(title.split())
        lengths.add(len(words))
    assert lengths == {1, 2, 3, 4}
    # Never all of a title's words; a title of one word has no part.
    assert {pair.query for pair in pairs[200:]} == {"garden", "hose"}


def test_pairs_hold_misspelled_words():
    titles = ["rubber garden hoses", "galvanised angle bracket"]
    words = misspelled_words(title_pairs(titles, 1000))
    # One or two words a query, a fifth of them hit, each in its own way.
    assert 450 < len(words) < 750
    assert len(set(words)) > 100


def test_all_depends_on_seed_and_texts_alone():
    typed = "interoir ood gule cor 8 oz bottls"  # the same in every process
    assert misspell(TEXT, 1.0) == typed
    assert misspell(TEXT, 1.0, 1) != misspell(TEXT, 1.0, 2)
    pairs = list(title_pairs(TITLES, 20))
    assert pairs == list(title_pairs(iter(TITLES), 20))
    assert pairs != list(title_pairs(TITLES, 20, seed=2))


def test_one_title_is_no_list_of_titles():
    with pytest.raises(InputError, match="titles is 'hex bolt': expected a"):
        next(title_pairs("hex bolt"))
