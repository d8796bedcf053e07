"""The suite `documents`: speed of KeyVec and of its PyTorch peer."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.benchmarks.measurement import (
    WARM_STEPS,
    fit_wall_and_cpu,
    interleaved_medians,
    torch_ratios,
    wall_and_cpu,
)
from keras_lstm_dssm.benchmarks.optional_peer import optional_peer
from keras_lstm_dssm.data import Document, DocumentFolder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import KEYVEC_PRESETS, KeyVec
from keras_lstm_dssm.training import (
    DocumentExamples,
    DocumentTargets,
    KeyWords,
    salience_teacher,
)
from keras_lstm_dssm.training.keyvec_training import new_keyvec

LENGTHS = (8, 40, 200, 1000)
"""Numbers of sentences of the documents that `measure_growth` times."""

RECIPE = KEYVEC_PRESETS["keyvec"].replace(
    max_sentences=LENGTHS[-1], skip_gram=False, key_word_start=0.0
)
_SENTENCES = 8000  # of all documents of one length, and of a training step
_GROWTH_STEPS = 3
_KEY_WORDS = 10


def measure_documents(
    folder: DocumentFolder, batch_size: int, steps: int, rounds: int
) -> dict[str, Any]:
    """Time KeyVec and its peers in PyTorch on the same documents.

    Args:
        folder: The documents; those of the split train are used.
        batch_size: Documents in a training step.
        steps: Training steps in one measurement. Encoding is measured on as
            many documents as these steps read, or on all if there are fewer.
        rounds: Number of measurements, whose median is returned.

    Returns:
        `train` and `encode`, each with `documents` and `sentences`, which are
        the numbers read in a training step (on average) and in encoding; for
        each model `documents_per_second`, `sentences_per_second`, and the
        milliseconds by the clock (`ms`) and of all threads (`cpu_ms`);
        `ratio_torch`, above 1 where ours is faster than the faster peer, and
        `cpu_ratio_torch`, the same of the time of all threads. `growth`: see
        `measure_growth`.

    Raises:
        InputError: There are fewer documents than one batch, or no word is
            frequent enough for the vocabulary.
    """
    documents = list(folder.of("train"))
    if len(documents) < batch_size:
        raise InputError(
            f"{folder.folder}: found {len(documents)} documents to train on, "
            f"fewer than one batch of {batch_size}: give a smaller --documents"
        )
    ours = new_keyvec(RECIPE, 0, _sentences_of(documents), len(documents))
    peers = new_peers(ours)
    batches = _whole_batches(documents, batch_size, steps)
    training: dict[str, Callable[[], np.ndarray]] = {
        "ours": partial(fit_wall_and_cpu, ours, batches, steps),
        **{
            form: partial(peer.train, batches, steps)
            for form, peer in peers.items()
        },
    }
    some = [one.sentences for one in documents[: steps * batch_size]]
    encoding = {
        "ours": partial(wall_and_cpu, partial(ours.encode, some)),
        **{
            form: partial(
                wall_and_cpu,
                partial(peer.encode, peer.prepare(some, batch_size)),
            )
            for form, peer in peers.items()
        },
    }
    in_steps = sum(
        int(tf.size(batch[0].flat_values))
        for batch in batches.skip(WARM_STEPS).take(steps)
    )
    return {
        "train": _rates(
            interleaved_medians(training, rounds), batch_size, in_steps / steps
        ),
        "encode": _rates(
            interleaved_medians(encoding, rounds),
            len(some),
            sum(map(len, some)),
        ),
        "growth": measure_growth(ours, _sentences_of(documents), rounds),
    }


def measure_growth(
    model: KeyVec, sentences: Sequence[str], rounds: int
) -> dict[str, Any]:
    """Time documents of different lengths, with equally many sentences in all.

    The documents are made of distinct sentences, since a model reads a
    sentence that occurs twice in a batch only once. All documents of one
    length are one training step: the longer they are, the fewer documents are
    read in parallel.

    Args:
        model: A compiled `KeyVec` that reads documents of all `LENGTHS`.
        sentences: The sentences of which the documents are made. A length is
            left out if there are fewer distinct sentences.
        rounds: Number of measurements, whose median is returned.

    Returns:
        Number of sentences in a document -> the microseconds of a sentence
        in training and in encoding, by the clock (`train_us`, `encode_us`)
        and of all threads (`train_cpu_us`, `encode_cpu_us`); and `ratio`, the
        same figures of the longest documents divided by those of the
        shortest.
    """
    distinct = list(dict.fromkeys(sentences))[:_SENTENCES]
    lengths = [length for length in LENGTHS if length <= len(distinct)]
    calls: dict[str, Callable[[], np.ndarray]] = {}
    for length in lengths:
        documents = _cut(distinct, length)
        calls[f"{length} encode"] = partial(_encode, model, documents)
        calls[f"{length} train"] = partial(_train, model, documents)
    figures: dict[str, Any] = {str(length): {} for length in lengths}
    for name, (wall, cpu) in interleaved_medians(calls, rounds).items():
        key, kind = name.split()
        figures[key] |= {f"{kind}_us": 1e6 * wall, f"{kind}_cpu_us": 1e6 * cpu}
    if lengths:
        shortest, longest = (figures[str(n)] for n in (lengths[0], lengths[-1]))
        figures["ratio"] = {n: longest[n] / shortest[n] for n in longest}
    return figures


def new_peers(ours: KeyVec) -> dict[str, Any]:
    """Return the peers by name; without PyTorch, print how to install it."""
    with optional_peer("torch"):
        from keras_lstm_dssm.benchmarks.torch_keyvec import TorchKeyVecRun

        return {
            f"torch_{form}": TorchKeyVecRun(
                ours, form == "packed", RECIPE.learning_rate
            )
            for form in ("packed", "padded")
        }
    return {}


def _rates(
    medians: Mapping[str, list[float]], documents: int, sentences: float
) -> dict[str, Any]:
    """Return rates and milliseconds by model, and ratios to the best peer."""
    return {
        "documents": documents,
        "sentences": sentences,
        **{
            model: {
                "documents_per_second": documents / wall,
                "sentences_per_second": sentences / wall,
                "ms": 1000 * wall,
                "cpu_ms": 1000 * cpu,
            }
            for model, (wall, cpu) in medians.items()
        },
        **torch_ratios(medians),
    }


def _whole_batches(
    documents: Sequence[Document], batch_size: int, steps: int
) -> tf.data.Dataset:
    """Stream documents as training does, in batches of equal size."""
    # The targets have no influence on the time: the quickest teacher.
    targets = DocumentTargets.from_teacher(
        documents, salience_teacher("lead", documents), KeyWords(documents)
    )
    epochs = -(-(WARM_STEPS + steps) // (len(documents) // batch_size))
    batches = DocumentExamples(documents, targets).batches(
        batch_size, epochs=epochs, seed=0
    )
    return batches.filter(lambda first, *_: first.nrows() == batch_size)


def _encode(model: KeyVec, documents: list[list[str]]) -> np.ndarray:
    return wall_and_cpu(lambda: model.encode(documents)) / _count(documents)


def _train(model: KeyVec, documents: list[list[str]]) -> np.ndarray:
    salient = [[True] + [False] * (len(one) - 1) for one in documents]
    key_words = [model.key_vocabulary[:_KEY_WORDS]] * len(documents)
    batch = tuple(map(tf.ragged.constant, (documents, salient, key_words)))
    batches = tf.data.Dataset.from_tensors(batch).repeat()
    return fit_wall_and_cpu(model, batches, _GROWTH_STEPS) / _count(documents)


def _count(documents: list[list[str]]) -> int:
    return sum(map(len, documents))


def _cut(sentences: Sequence[str], length: int) -> list[list[str]]:
    """Cut sentences into documents of equal length; the rest is left out."""
    ends = range(length, len(sentences) + 1, length)
    return [list(sentences[end - length : end]) for end in ends]


def _sentences_of(documents: Sequence[Document]) -> list[str]:
    return [text for document in documents for text in document.sentences]
