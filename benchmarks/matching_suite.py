"""The suite `matching`: speed of pair scorers and of their PyTorch peers."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.benchmarks.measurement import (
    WARM_STEPS,
    fit_wall_and_cpu,
    interleaved_medians,
    percentiles,
    seconds,
    torch_ratios,
)
from keras_lstm_dssm.benchmarks.optional_peer import optional_peer
from keras_lstm_dssm.data import Triples
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.losses import PairwiseHinge
from keras_lstm_dssm.models import SCORER_PRESETS, PairScorer
from keras_lstm_dssm.optimizers.adagrad import Adagrad
from keras_lstm_dssm.text import vocabulary_of

PRESETS = ("mv_lstm_tensor", "lstm_rnn_50")
CANDIDATES = 1000
_CALLS = 10


def measure_matching(
    triples: Triples, batch_size: int, steps: int, rounds: int
) -> dict[str, Any]:
    """Time pair scorers and their peers in PyTorch on the same triples.

    Args:
        triples: The triples to train on.
        batch_size: Triples in a training step.
        steps: Training steps in one measurement.
        rounds: Number of measurements, whose median is returned.

    Returns:
        For each of `PRESETS`: `triples_per_second` (each has two pairs), the
        milliseconds of the training step and of all its threads, for each
        model; `ratio_torch`, above 1 where ours is faster, and
        `cpu_ratio_torch`, the same of the time of all threads; and in
        `score` the milliseconds of scoring 1,000 candidates of one query.

    Raises:
        InputError: There are fewer triples than one batch.
    """
    batches = _whole_batches(triples, batch_size, steps)
    vocabulary = vocabulary_of(triples.texts)
    ours = {name: _new_scorer(name, vocabulary) for name in PRESETS}
    peers = {name: _new_peers(name, ours[name]) for name in PRESETS}
    training: dict[str, Callable[[], np.ndarray]] = {}
    for name in PRESETS:
        training[f"{name} ours"] = partial(
            fit_wall_and_cpu, ours[name], batches, steps
        )
        for form, peer in peers[name].items():
            training[f"{name} {form}"] = partial(peer.train, batches, steps)
    medians = interleaved_medians(training, rounds)
    candidates = _candidates(triples)
    return {
        name: {
            **_rates(
                {
                    key.split()[1]: value
                    for key, value in medians.items()
                    if key.split()[0] == name
                },
                batch_size,
            ),
            "score": _scoring(ours[name], peers[name], *candidates, rounds),
        }
        for name in PRESETS
    }


def _rates(medians: dict[str, list[float]], batch_size: int) -> dict[str, Any]:
    """Return rates and milliseconds by model, and ratios to the best peer."""
    return {
        **{
            model: {
                "triples_per_second": batch_size / wall,
                "step_ms": 1000 * wall,
                "step_cpu_ms": 1000 * cpu,
            }
            for model, (wall, cpu) in medians.items()
        },
        **torch_ratios(medians),
    }


def _scoring(
    scorer: PairScorer,
    peers: dict[str, Any],
    query: str,
    candidates: Sequence[str],
    rounds: int,
) -> dict[str, Any]:
    """Time the scoring of all candidates of a query."""
    first = seconds(partial(scorer.score, query, candidates))
    calls: dict[str, Callable[[], Any]] = {
        "ours": partial(_percentiles, scorer.score, query, candidates)
    }
    for form, peer in peers.items():
        texts = peer.prepare(query, candidates)
        calls[form] = partial(_percentiles, peer.score, texts)
    medians = interleaved_medians(calls, rounds)
    return {
        "candidates": len(candidates),
        "first_call_ms": 1000 * first,
        **{
            name: {"p50_ms": p50, "p99_ms": p99}
            for name, (p50, p99) in medians.items()
        },
    }


def _percentiles(score: Callable[..., Any], *arguments: Any) -> np.ndarray:
    return percentiles(lambda _: score(*arguments), range(_CALLS))


def _new_scorer(preset: str, vocabulary: Sequence[str]) -> PairScorer:
    model = SCORER_PRESETS[preset].build(0, vocabulary)
    rates = model.matcher.multipliers
    model.compile(Adagrad(0.03, multipliers=rates), PairwiseHinge())
    return model


def _new_peers(preset: str, scorer: PairScorer) -> dict[str, Any]:
    """Return the peers by name; without PyTorch, print how to install it."""
    with optional_peer("torch"):
        from keras_lstm_dssm.benchmarks.torch_matching import (
            TorchLSTMRNN,
            TorchMVLSTM,
            TorchScorer,
        )

        kind = {
            "mv_lstm_tensor": TorchMVLSTM,
            "lstm_rnn_50": TorchLSTMRNN,
        }[preset]
        rows = scorer.words.embedding.size
        return {
            f"torch_{form}": TorchScorer(
                scorer.words, kind(rows, packed=form == "packed")
            )
            for form in ("packed", "padded")
        }
    return {}


def _whole_batches(
    triples: Triples, batch_size: int, steps: int
) -> tf.data.Dataset:
    """Stream triples as training does, in batches of equal size."""
    in_epoch = len(triples) // batch_size
    if not in_epoch:
        raise InputError(
            f"{len(triples)} triples, fewer than one batch of {batch_size}; "
            "give a smaller --triples"
        )
    epochs = -(-(WARM_STEPS + steps) // in_epoch)
    batches = triples.batches(batch_size, epochs=epochs, seed=0)
    return batches.filter(lambda query, *_: tf.size(query) == batch_size)


def _candidates(triples: Triples) -> tuple[str, list[str]]:
    """Return a query of median length, and distinct documents."""
    pairs = list(zip(*triples.positive_pairs(), strict=True))
    query, _ = sorted(pairs, key=lambda pair: len(pair[0]))[len(pairs) // 2]
    queries = {query for query, _ in pairs}
    documents = [text for text in triples.texts if text not in queries]
    return query, documents[:CANDIDATES]
