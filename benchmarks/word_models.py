"""Times pair scorers (suite `matching`) and KeyVec (suite `documents`)."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.clocks import (
    WARM_STEPS,
    interleaved_medians,
    percentiles_and_cpu,
    seconds,
    wall_and_cpu,
)
from benchmarks.measure import (
    Contender,
    compare,
    fit_wall_and_cpu,
    full_batches,
    has_library,
    ours,
    peer,
)
from benchmarks.peers import Batch, write_input
from keras_lstm_dssm.data import Document, DocumentFolder, Triples
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.export_models import export_model
from keras_lstm_dssm.layers import VocabularyVectors
from keras_lstm_dssm.models import (
    KEYVEC_PRESETS,
    SCORER_PRESETS,
    KeyVec,
    PairScorer,
)
from keras_lstm_dssm.models.document_batch import DocumentBatch, HashedDocuments
from keras_lstm_dssm.models.word_builders import build_scorer, compile_scorer
from keras_lstm_dssm.serving.saved_models import SavedScorer
from keras_lstm_dssm.text import vocabulary_of
from keras_lstm_dssm.training import (
    DocumentExamples,
    DocumentTargets,
    KeyWords,
    salience_teacher,
)
from keras_lstm_dssm.training.keyvec_training import new_keyvec

PRESETS = ("mv_lstm_tensor", "lstm_rnn_50")
CANDIDATES = 1000
CALLS = 10

FORMS = ("packed", "padded")
"""How a peer's `nn.LSTM` reads sequences. There is a peer for each form."""

LENGTHS = (8, 40, 200, 1000)
"""Lengths of documents in sentences, for `measure_growth`."""

RECIPE = KEYVEC_PRESETS["keyvec"].replace(
    max_sentences=LENGTHS[-1], skip_gram=False, key_word_start=0.0
)
_SENTENCES = 8000  # largest number of sentences in `measure_growth`
_GROWTH_STEPS = 3
_KEY_WORDS = 10


def measure_matching(
    triples: Triples, batch_size: int, steps: int, rounds: int
) -> dict[str, Any]:
    """Times how pair scorers and peers train, and how they score candidates."""
    batches = triple_batches(triples, batch_size, steps)
    query, documents = _query_and_documents(triples)
    candidates = documents[:CANDIDATES]
    with_torch = has_library("torch")
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        for preset in PRESETS:
            folder = Path(name, preset)
            folder.mkdir()
            contenders = {
                "ours": ours(
                    folder, "ours", scorer_works, preset, list(triples),
                    batch_size, steps, query, documents,
                )
            }  # fmt: skip
            if with_torch:
                words = new_scorer(preset, vocabulary_of(triples.texts)).words
                contenders |= _torch_peers(
                    folder,
                    {"kind": preset, "rows": words.embedding.size},
                    train=(
                        pair_batch(words, text, tf.concat(documents, 0))
                        for text, *documents in batches.take(WARM_STEPS + steps)
                    ),
                    score=[
                        pair_batch(
                            words, tf.constant([query]), tf.constant(candidates)
                        )
                    ],
                )
            taken, fastest = compare(contenders, "train", rounds)
            results[preset] = {
                model: {
                    "triples_per_second": batch_size / wall,
                    "step_ms": 1000 * wall,
                    "step_cpu_ms": 1000 * cpu,
                }
                for model, (wall, cpu) in taken.items()
            }
            results[preset] |= torch_ratios(taken)
            results[preset]["environments"] = fastest
            results[preset]["score"] = _scoring(
                contenders, len(candidates), rounds
            )
    return results


def _scoring(
    contenders: Mapping[str, Contender], candidates: int, rounds: int
) -> dict[str, Any]:
    """Times how models score the candidates of a query, in milliseconds."""
    taken, fastest = compare(contenders, "score", rounds)
    times = {name: numbers[:3] for name, numbers in taken.items()}
    times["ours_new"] = taken["ours"][3:6]
    times["ours_exported"] = taken["ours"][6:9]
    return {
        "candidates": candidates,
        "first_call_ms": taken["ours"][-1],
        **{
            name: {"p50_ms": p50, "p99_ms": p99, "cpu_ms": cpu}
            for name, (p50, p99, cpu) in times.items()
        },
        "environments": fastest,
    }


def scorer_works(
    preset: str,
    texts: Sequence[tuple[str, str, str]],
    batch_size: int,
    steps: int,
    query: str,
    documents: Sequence[str],
) -> dict[str, Callable[[], Any]]:
    """Returns name -> task, for the tasks `train` and `score`."""
    starts = range(CANDIDATES, len(documents) - CANDIDATES + 1, CANDIDATES)
    candidates = documents[:CANDIDATES]
    # `score` times the candidates with full caches. Then `score` empties the
    # caches, and times each list in `new`. The lists have the documents after
    # the candidates. If fewer than `CANDIDATES` documents follow, the only list
    # has the candidates themselves.
    new = [documents[i : i + CANDIDATES] for i in starts][:CALLS] or [
        candidates
    ]
    triples = Triples((query, [yes], [no]) for query, yes, no in texts)
    scorer = new_scorer(preset, vocabulary_of(triples.texts))
    batches = triple_batches(triples, batch_size, steps)
    first: list[float] = []
    exported: list[SavedScorer] = []

    def score() -> list[float]:
        if not first:
            call = partial(scorer.score, query, candidates)
            first.append(1000 * seconds(call))

        def score_texts(texts: Sequence[str]) -> None:
            scorer.score(query, texts)

        cached_times = percentiles_and_cpu(score_texts, [candidates] * CALLS)
        # Empties the caches of hashed texts and of represented documents.
        scorer.hasher.cache = scorer.words.cache()
        del scorer._documents
        # This call is not timed, because the new cache reads the vocabulary.
        score_texts(["one"])
        new_times = percentiles_and_cpu(score_texts, new)
        score_texts(candidates)
        if not exported:
            with tempfile.TemporaryDirectory() as folder:
                exported.append(SavedScorer(export_model(scorer, folder)))
        score_exported = partial(exported[0].score, query)
        score_exported(candidates)
        exported_times = percentiles_and_cpu(
            score_exported, [candidates] * CALLS
        )
        # The numbers are milliseconds. Each of the three lists of times has
        # p50, p99 and processor time. `first` has the time of the first call.
        return [*cached_times, *new_times, *exported_times, *first]

    return {
        "train": partial(fit_wall_and_cpu, scorer, batches, steps),
        "score": score,
    }


def new_scorer(preset: str, vocabulary: Sequence[str]) -> PairScorer:
    """Returns a compiled pair scorer."""
    recipe = SCORER_PRESETS[preset]
    model = build_scorer(recipe, vocabulary=vocabulary)
    compile_scorer(model, recipe)
    return model


def _torch_peers(
    folder: Path, settings: Mapping[str, Any], **batches: Iterable[Batch]
) -> dict[str, Contender]:
    write_input(folder, settings, **batches)
    return {
        f"torch_{form}": peer("torch_word_models", folder, form)
        for form in FORMS
    }


def pair_batch(
    words: VocabularyVectors, query: tf.Tensor, document: tf.Tensor
) -> Batch:
    """Returns each text's padded word ids and number of words, for peers."""
    batch = {}
    for side, texts in (("query", query), ("document", document)):
        hashed = words.distinct(texts)
        ids = tf.gather(hashed.trigrams, hashed.words)
        batch[f"{side}_ids"] = tf.gather(ids, hashed.text_index).numpy()
        lengths = tf.gather(hashed.lengths, hashed.text_index)
        batch[f"{side}_lengths"] = lengths.numpy()
    return batch


def triple_batches(
    triples: Triples, batch_size: int, steps: int
) -> tf.data.Dataset:
    """Streams triples as training does, in batches of equal size."""
    if len(triples) < batch_size:
        raise InputError(
            f"found {len(triples)} triples, fewer than a batch of "
            f"{batch_size}; give a smaller batch size by --triples"
        )
    return full_batches(triples.batches, len(triples), batch_size, steps)


def _query_and_documents(triples: Triples) -> tuple[str, list[str]]:
    """Returns a query of median length, and all distinct documents."""
    pairs = list(zip(*triples.positive_pairs(), strict=True))
    query, _ = sorted(pairs, key=lambda pair: len(pair[0]))[len(pairs) // 2]
    queries = {query for query, _ in pairs}
    return query, [text for text in triples.texts if text not in queries]


def measure_documents(
    folder: DocumentFolder, batch_size: int, steps: int, rounds: int
) -> dict[str, Any]:
    """Times KeyVec and peers in PyTorch on the same documents."""
    documents = list(folder.of("train"))
    if len(documents) < batch_size:
        raise InputError(
            f"{folder.folder}: found {len(documents)} documents, fewer than a "
            f"batch of {batch_size}; give a smaller batch size by --documents"
        )
    to_encode = [d.sentences for d in documents[: steps * batch_size]]
    model = new_keyvec(RECIPE, 0, _sentences_of(documents), len(documents))
    batches = document_batches(documents, batch_size, steps)
    sentences = sum(
        int(tf.size(batch[0].flat_values))
        for batch in batches.skip(WARM_STEPS).take(steps)
    )
    with tempfile.TemporaryDirectory() as name:
        contenders = {
            "ours": ours(
                Path(name), "ours", keyvec_works, documents, batch_size, steps,
                to_encode,
            )
        }  # fmt: skip
        if has_library("torch"):
            contenders |= _keyvec_peers(
                Path(name), model, batches.take(WARM_STEPS + steps), to_encode,
                batch_size,
            )  # fmt: skip
        return {
            "train": _document_rates(
                *compare(contenders, "train", rounds),
                batch_size,
                sentences / steps,
            ),
            "encode": _document_rates(
                *compare(contenders, "encode", rounds),
                len(to_encode),
                sum(map(len, to_encode)),
            ),
            "growth": measure_growth(model, _sentences_of(documents), rounds),
        }


def _document_rates(
    taken: Mapping[str, list[float]],
    fastest: Mapping[str, str],
    documents: int,
    sentences: float,
) -> dict[str, Any]:
    """Returns each model's rates and times, and the `torch_ratios`."""
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
            for model, (wall, cpu) in taken.items()
        },
        **torch_ratios(taken),
        "environments": fastest,
    }


def keyvec_works(
    rows: Sequence[Sequence[Any]],
    batch_size: int,
    steps: int,
    to_encode: Sequence[Sequence[str]],
) -> dict[str, Callable[[], Any]]:
    """Returns tasks by name; each of `rows` has the fields of a `Document`."""
    documents = [Document(*row) for row in rows]
    model = new_keyvec(RECIPE, 0, _sentences_of(documents), len(documents))
    batches = document_batches(documents, batch_size, steps)
    return {
        "train": partial(fit_wall_and_cpu, model, batches, steps),
        "encode": partial(wall_and_cpu, partial(model.encode, to_encode)),
    }


def document_batches(
    documents: Sequence[Document], batch_size: int, steps: int
) -> tf.data.Dataset:
    """Streams documents as training does, in batches of equal size."""
    # `lead` is the fastest teacher. Targets do not affect a step's time.
    targets = DocumentTargets.from_teacher(
        documents, salience_teacher("lead", documents), KeyWords(documents)
    )
    examples = DocumentExamples(documents, targets)
    return full_batches(examples.batches, len(documents), batch_size, steps)


def _keyvec_peers(
    folder: Path,
    model: KeyVec,
    batches: tf.data.Dataset,
    to_encode: Sequence[Sequence[str]],
    batch_size: int,
) -> dict[str, Contender]:
    order = sorted(to_encode, key=len)
    return _torch_peers(
        folder,
        {
            "kind": "keyvec",
            "learning_rate": RECIPE.learning_rate,
            **keyvec_sizes(model),
        },
        train=(example_batch(model.hasher(*batch)) for batch in batches),
        encode=(
            document_batch(
                model.hasher.documents(
                    tf.ragged.constant(order[start : start + batch_size])
                )
            )
            for start in range(0, len(order), batch_size)
        ),
    )


def keyvec_sizes(model: KeyVec) -> dict[str, Any]:
    """Returns the sizes of a KeyVec, as arguments of `TorchKeyVec`."""
    return {
        "rows": model.words.embedding.size + 1,
        "key_words": len(model.key_lookup),
        "width": model.words.dimension,
        "filters": model.sentence_encoder.filters,
        "windows": list(model.sentence_encoder.windows),
        "units": model.reader.units,
        "dimension": model.dimension,
    }


def document_batch(batch: DocumentBatch) -> Batch:
    """Returns the padded documents of a hashed batch, for peers."""
    sentences = batch.sentences
    ids = tf.gather(
        tf.gather(sentences.trigrams, sentences.words), sentences.text_index
    )
    counts = tf.gather(sentences.lengths, sentences.text_index)
    # Id 0 is the unknown word in our models, but padding in the peers.
    mask = tf.sequence_mask(counts, tf.shape(ids)[1])
    arrays = {"words": tf.where(mask, ids + 1, 0), "word_counts": counts}
    return {
        **{
            name: tf.RaggedTensor.from_row_lengths(values, batch.lengths)
            .to_tensor()
            .numpy()
            for name, values in arrays.items()
        },
        "lengths": batch.lengths.numpy(),
    }


def example_batch(batch: HashedDocuments) -> Batch:
    """Returns the padded documents and targets of a hashed batch, for peers."""
    salient = tf.RaggedTensor.from_row_lengths(
        tf.cast(batch.salient, tf.float32), batch.documents.lengths
    )
    return {
        **document_batch(batch.documents),
        "salient": salient.to_tensor().numpy(),
        "key_words": batch.key_words.numpy(),
        "key_word_document": batch.key_word_document.numpy(),
    }


def measure_growth(
    model: KeyVec, sentences: Sequence[str], rounds: int
) -> dict[str, Any]:
    """Returns length of documents -> times of training and encoding.

    The times are microseconds for a sentence: wall time and processor time.
    The entry `ratio` has the times with the longest documents, divided by the
    times with the shortest documents.
    """
    distinct = list(dict.fromkeys(sentences))[:_SENTENCES]
    lengths = [length for length in LENGTHS if length <= len(distinct)]
    calls: dict[str, Callable[[], np.ndarray]] = {}
    for length in lengths:
        documents = _cut_documents(distinct, length)
        calls[f"{length} encode"] = partial(_encode, model, documents)
        calls[f"{length} train"] = partial(_train, model, documents)
    results: dict[str, Any] = {str(length): {} for length in lengths}
    for name, (wall, cpu) in interleaved_medians(calls, rounds).items():
        key, kind = name.split()
        results[key] |= {f"{kind}_us": 1e6 * wall, f"{kind}_cpu_us": 1e6 * cpu}
    if lengths:
        shortest, longest = (results[str(n)] for n in (lengths[0], lengths[-1]))
        results["ratio"] = {n: longest[n] / shortest[n] for n in longest}
    return results


def _encode(model: KeyVec, documents: list[list[str]]) -> np.ndarray:
    return wall_and_cpu(lambda: model.encode(documents)) / _count(documents)


def _train(model: KeyVec, documents: list[list[str]]) -> np.ndarray:
    salient = [[True] + [False] * (len(text) - 1) for text in documents]
    key_words = [model.key_vocabulary[:_KEY_WORDS]] * len(documents)
    batch = tuple(map(tf.ragged.constant, (documents, salient, key_words)))
    batches = tf.data.Dataset.from_tensors(batch).repeat()
    return fit_wall_and_cpu(model, batches, _GROWTH_STEPS) / _count(documents)


def _count(documents: list[list[str]]) -> int:
    return sum(map(len, documents))


def _cut_documents(sentences: Sequence[str], length: int) -> list[list[str]]:
    """Groups sentences into documents of equal length; omits a remainder."""
    ends = range(length, len(sentences) + 1, length)
    return [list(sentences[end - length : end]) for end in ends]


def _sentences_of(documents: Sequence[Document]) -> list[str]:
    return [text for document in documents for text in document.sentences]


def torch_ratios(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Returns the peers' best times divided by our times; {} without peers."""
    ours = times["ours"]
    peers = [taken for model, taken in times.items() if model != "ours"]
    return {
        name: min(taken[number] for taken in peers) / ours[number]
        for number, name in enumerate(("ratio_torch", "cpu_ratio_torch"))
        if peers
    }
