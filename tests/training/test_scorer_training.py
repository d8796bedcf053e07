"""dssm.train of a pair scorer: what it learns, by hand, and a dead network."""

from contextlib import nullcontext

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.callbacks import DeadNetwork, DeadNetworkWatch
from keras_lstm_dssm.data import Collection, Triples
from keras_lstm_dssm.evaluation import Task, system_of
from keras_lstm_dssm.models.word_builders import build_scorer
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.text import vocabulary_of
from keras_lstm_dssm.training import scorer_training
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors
from tests.kit.equal import check_equal
from tests.kit.kinds import SCORER
from tests.matchers.small_matchers import SMALL_MATCHERS
from tests.training.small_trainings import EpochWeights

pytestmark = pytest.mark.usefixtures("kinds_data")

SMALL = dssm.ScorerRecipe(
    "MVLSTM", {"interaction": "cosine", "units": 2, "k": 2, "hidden": 3},
    word_dimension=4, learning_rate=0.3, batch_size=7,
)  # fmt: skip
TRIPLES = 6 * 5


def test_judged_lists_are_learnt_and_the_best_epoch_is_kept(tmp_path):
    """A title is found by the word that the query shares with it."""
    model = dssm.train(
        "judged", SMALL.replace(epochs=20), output=tmp_path, dev="judged",
        select="p@1", every=5, verbose=0,
    )  # fmt: skip
    task = Task.from_collection(Collection("judged"), "dev")
    measured = task.evaluate(task.run(system_of(model)))
    history = RunFolder(tmp_path).read_history()
    figures = [row["dev_p@1"] for row in history if "dev_p@1" in row]
    assert len(figures) == 4
    assert measured["p@1"] == max(figures) >= 5 / 6
    check_equal(dssm.load_run(tmp_path), model)


@pytest.mark.parametrize(("matcher", "sizes", "learning_rate"), [
    ("ARCI", {}, 0.03),
    ("ARCII", {"filters": [16], "hidden": [16]}, 0.1),
    ("CNTN", {}, 0.1),
    ("DeepMatch", {}, 0.3),
    ("MVLSTM", {}, 0.3),
    ("MultiGranCNN", {}, 0.1),
    ("RAE", {}, 0.3),
])  # fmt: skip
def test_each_matcher_learns(matcher, sizes, learning_rate, tmp_path, eager):
    """Every trainable weight moves, and the loss falls; ARC-I's falls later."""
    recipe = dssm.ScorerRecipe(
        matcher, SMALL_MATCHERS[matcher] | sizes, word_dimension=8,
        learning_rate=learning_rate, batch_size=TRIPLES, epochs=8,
    )  # fmt: skip
    model = dssm.train(
        "judged", recipe, output=tmp_path / "run", verbose=0,
        callbacks=[weights := EpochWeights()],
    )  # fmt: skip
    slow = {"MVLSTM": "interaction", "MultiGranCNN": "phrase_similarity"}
    expected = {slow[matcher]: 0.1} if matcher in slow else {}
    assert model.optimizer.multipliers == expected
    trained = {id(variable) for variable in model.trainable_variables}
    for variable, first, last in zip(
        model.weights, weights.of[1], weights.of[8], strict=True
    ):
        moved = bool(np.any(first != last))
        assert moved == (id(variable) in trained), variable.path
    losses = [row["loss"] for row in RunFolder(tmp_path / "run").read_history()]
    assert matcher == "ARCI" or losses[-1] < 0.95 * losses[0]


def test_the_topics_of_deep_match_are_chosen_by_the_data(
    tmp_path, monkeypatch, eager
):
    """By the number of pairs, unless `init` or the recipe has numbers."""
    levels = {6: (2, 3)}  # of six training pairs
    monkeypatch.setattr(scorer_training, "topic_levels", levels.__getitem__)
    recipe = SCORER.replace(
        matcher="DeepMatch", matcher_config={"largest": 4}, epochs=1
    )
    parent = dssm.train("judged", recipe, output=tmp_path / "run", verbose=0)
    assert parent.matcher.topics == [2, 3]
    del levels[6]
    child = dssm.train("judged", recipe, init=tmp_path / "run", verbose=0)
    assert child.matcher.topics == [2, 3]
    levels[6] = (2, 3)
    given = recipe.with_matcher(topics=[1, 2])
    assert dssm.train("judged", given, verbose=0).matcher.topics == [1, 2]


def test_python_and_the_recipe_by_hand_give_one_model():
    """What `train` does: vocabulary, skip-gram, Adagrad, hinge, order."""
    trained = dssm.train("judged", SCORER, seed=3, verbose=0)
    triples = Triples.from_collection(Collection("judged"))
    assert len(triples) == TRIPLES
    vocabulary = vocabulary_of(triples.texts)
    model = build_scorer(
        SCORER,
        3,
        vocabulary,
        skip_gram_vectors(triples.texts, vocabulary, 4, epochs=30, seed=3),
    )
    model.compile(dssm.Adagrad(0.03), dssm.PairwiseHinge(1.0))
    model.fit(triples.batches(15, epochs=3, seed=3), verbose=0)
    check_equal(trained, model)


def test_a_dead_network_stops_with_one_line(tmp_path):
    """A learning rate of 10 leaves no relu unit above 0; 1 does."""
    run = RunFolder(tmp_path / "run")
    dead = SMALL.replace(learning_rate=10.0, epochs=4, skip_gram=False)
    options = {"verbose": 0, "callbacks": [kept := EpochWeights()]}
    with pytest.raises(dssm.InputError, match="the network is dead") as error:
        dssm.train("judged", dead, output=run.path, **options)
    message = str(error.value)
    assert "\n" not in message and "a smaller --learning_rate" in message
    stopped = int(message.removeprefix("epoch ").split(":")[0])
    assert stopped == max(kept.of) + 1
    # The state of the epoch before can be resumed, and stops there again.
    steps = int(run.load_checkpoint().optimizer.iterations.numpy())
    assert steps == (stopped - 1) * 5
    check_equal(run.load_checkpoint(), kept.of[stopped - 1])
    assert [row["epoch"] for row in run.read_history()] == list(kept.of)
    assert not run.model.exists()
    with pytest.raises(dssm.InputError, match=f"^epoch {stopped}: .* is dead"):
        dssm.resume(run.path, verbose=0)


@pytest.mark.parametrize(("epoch", "steps", "accuracy", "loss", "dead"), [
    (1, 5, 0.0, 0.3000001, True),
    (0, 5, 0.0, 0.3, False),  # all weights of the last layer start at 0
    (1, 4, 0.0, 0.3, False),  # the rest of an interrupted epoch
    (1, 5, 0.1, 0.30001, True),  # saturated units, but for rounding
    (1, 5, 0.5, 0.29999, False),  # small scores, but different ones
    (1, 5, 0.0, 0.301, False),
])  # fmt: skip
def test_what_a_dead_network_is(epoch, steps, accuracy, loss, dead):
    watch = DeadNetworkWatch(margin=0.3, steps=5)
    watch.set_params({"steps": steps})
    with pytest.raises(DeadNetwork) if dead else nullcontext():
        watch.on_epoch_end(epoch, {"accuracy": accuracy, "loss": loss})
