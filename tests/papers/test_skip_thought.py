from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm import InputError
from keras_lstm_dssm.papers.skip_thought import SkipThoughtSystem
from tests.papers.eager_skip_thought import train_eagerly

ANIMALS = ["cat", "dog", "cow", "hen"]
TOOLS = ["saw", "nail", "bolt", "rod"]
# Words of one kind never share a sentence: only what follows says it.
PARAGRAPHS = [
    [f"this is a {word}", after]
    for words, after in (
        (ANIMALS, "it eats and sleeps at home"),
        (TOOLS, "steel gets rusty in rain"),
    )
    for word in words
] * 8
TEXTS = ["a cat", "", "unheard of", "This is a BOLT, it is a bolt"]


def train(mode: str = "uni", **options: Any) -> SkipThoughtSystem:
    arguments = {"units": 8, "embedding": 4, "epochs": 1, "batch_size": 16}
    return SkipThoughtSystem(mode, **{**arguments, **options}).fit(PARAGRAPHS)


@pytest.fixture(scope="module", params=[0, 10])
def trained(request) -> SkipThoughtSystem:
    """Trains by the softmax over all words, or over sampled ones."""
    options = {"units": 16, "embedding": 8, "epochs": 14}
    return train(**options, learning_rate=0.05, sampled=request.param)


@pytest.fixture(scope="module")
def combined() -> SkipThoughtSystem:
    with pytest.MonkeyPatch.context() as patch:
        train_eagerly(patch)
        return train("combined")


def test_like_contexts_pull_sentences_together(trained):
    documents = {name: f"this is a {name}" for name in ANIMALS + TOOLS}
    run = trained.retrieve(documents, documents, 8)
    for kind in (ANIMALS, TOOLS):
        for name in kind:
            scores = list(run[name].values())
            assert set(list(run[name])[:4]) == set(kind)
            assert scores[3] > scores[4] + 0.3
    ranked = trained.rerank({"q": "a dog"}, {"q": ["saw", "hen"]}, documents)
    assert list(ranked["q"]) == ["hen", "saw"]


def test_the_loss_falls_to_what_cannot_be_foretold(trained):
    losses = trained.history["uni"]
    # The sentence after does not tell which of four words it was: of the 12
    # words of a pair, the ends counted, one costs log(4) at best.
    least = np.log(4) / 12 if not trained.sampled else 0
    assert losses[0] > 1.5 > 0.4 > losses[-1] > least


def test_combined_is_made_of_uni_and_bi(combined, monkeypatch):
    bi = train("bi", seed=1)
    train_eagerly(monkeypatch)  # as `combined`
    uni = train("uni")
    vectors = combined.encode(TEXTS)
    np.testing.assert_array_equal(vectors[:, :8], uni.encode(TEXTS))
    assert combined.history["uni"] == uni.history["uni"]
    # Another seed gives other weights.
    assert np.abs(vectors[:, 8:] - bi.encode(TEXTS)).min() > 0
    assert combined.encode([]).shape == (0, 16)
    # Words; three gates, each of input, state and bias.
    words = len({w for p in PARAGRAPHS for s in p for w in s.split()}) + 3
    assert uni.parameters == words * 4 + 3 * 8 * (4 + 8 + 1)
    assert bi.parameters == words * 4 + 2 * 3 * 4 * (4 + 4 + 1)
    assert combined.parameters == uni.parameters + bi.parameters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "tri"}, "'tri': choose one of uni, bi, combined"),
        ({"units": 7}, "7 units, expected an even number"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(InputError, match=message):
        SkipThoughtSystem(**options)


@pytest.mark.parametrize(
    ("paragraphs", "message"),
    [
        (["One. Two."], "paragraph 1: found 'One. Two.'"),
        ([["a", "b"], ["a", 3]], "paragraph 2: found .*list of sentences"),
        ([["a"], ["b"]], "found 2 paragraphs of one sentence or none"),
        ([], "found 0 paragraphs"),
    ],
)
def test_wrong_paragraphs(paragraphs, message):
    with pytest.raises(InputError, match=message):
        SkipThoughtSystem().fit(paragraphs)


def test_untrained():
    with pytest.raises(InputError, match=r"call fit\(titles\) first"):
        SkipThoughtSystem().encode(["a"])
