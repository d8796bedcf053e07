"""Evaluate a run, and the systems that it is compared or mixed with."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from keras_lstm_dssm.analysis.hybrid import (
    measure_hybrid,
    read_hybrid,
    report_choice,
    write_hybrid,
)
from keras_lstm_dssm.data.click_log import describe_bad
from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.documents import DocumentFolder
from keras_lstm_dssm.data.sources import open_collection, open_documents
from keras_lstm_dssm.distillation.teacher_vectors import (
    TeacherFolder,
    TeacherVectors,
    open_outside_encoder,
)
from keras_lstm_dssm.distillation.word_fit import check_fitted
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS, BM25System
from keras_lstm_dssm.evaluation.measures import QueryMeasures
from keras_lstm_dssm.evaluation.mixture import (
    Mixture,
    choose_weights,
    mixture_weights,
)
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.evaluation.systems import (
    DenseSystem,
    PairSystem,
    system_of,
    with_cached_vectors,
)
from keras_lstm_dssm.evaluation.task import (
    MAIN_MEASURES,
    AnyTask,
    Task,
    document_tasks,
    document_text,
    format_table,
    means,
    measure_systems,
)
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.model_cards.record import record_evaluation
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.choices import RANDOM_ORDER
from keras_lstm_dssm.settings.kinds import kind_of

MODEL, BM25, MIXTURE = "model", "bm25", "mixture"
"""Names of systems in results."""

Baselines = Callable[[list[str]], Mapping[str, System]]
"""Function from the training documents to systems, by name."""

Report = Callable[[str], object]
"""Function that is given each line of the results, such as `print`."""

_WORDS = {
    "space": "separated by white space",
    "alphanumeric": "runs of letters and digits",
    "stemmed": "English stems, without stop words",
}


def evaluate_run(
    run: str | os.PathLike[str],
    data: str,
    split: str = "test",
    min_relevant: int = 1,
    baselines: Baselines = lambda texts: {},
    progress: bool = False,
    report: Report = lambda line: None,
    **of_titles: Any,
) -> dict[str, Any]:
    """Measures the model of a run, and stores the results in the run.

    A model of titles is measured beside BM25 and random order, see
    `measure_titles`; a `KeyVec` by retrieval and by clusters beside
    `baselines`. The results are added to `metrics.json`, under split and task
    such as `"test/retrieve"`, those of the latest evaluation also under the
    split; and to `CARD.md`. Those of an outside encoder are only returned.

    Args:
        run: The run folder, or an encoder that this package did not train, see
            `open_outside_encoder`.
        data: What to evaluate on, see `open_collection`; of a `KeyVec`, see
            `open_documents`.
        split: Split of the data.
        min_relevant: Grade from which a document is relevant.
        baselines: What a `KeyVec` is compared with, such as
            `papers.document_baselines`.
        progress: Whether to show a progress bar of encoding.
        report: Is given each line of the results. By default none is shown.
        **of_titles: Not for a `KeyVec`. `mode`: `"rerank"` or `"retrieve"`,
            see `Task.from_collection`; `depth`: number of documents retrieved
            for each query; `run_file`: file for the rankings; `bm25_words`:
            a key of `TOKENIZERS`, by default the words that the model reads;
            `batch_size`: number of texts encoded at once; `mix`: systems
            whose scores are added to the model's, see `open_system`;
            `mix_weights`: weights of the model and these, by default chosen
            on the split dev of `dev` (default: `data`) by the measure
            `select` (default: that of `MAIN_MEASURES`); `teacher`: for a run
            of `word_sum`, the folder of `teach` whose own vectors the titles
            get, as in an export; `hybrid`: whether to measure the parts of
            the run with BM25, too, see `measure_hybrid`.

    Returns:
        Split -> `mode`, facts such as `bm25_words`, and system -> measure ->
        value from 0 to 1; of a `KeyVec`, split -> task -> system -> measure
        -> value. Of an outside encoder also `texts_per_second`.

    Raises:
        InputError: The run or the data cannot be read, the split has nothing
            to measure on, or an argument is wrong.

    Example:
    >>> results = evaluate_run("RUN", "api", mode="retrieve")
    >>> results["test"]["model"]["mrr@10"] > results["test"]["bm25"]["mrr@10"]
    True
    """
    # What would fail at the end fails first.
    if of_titles.get("run_file"):
        check_writable(of_titles["run_file"])
    mix = of_titles.get("mix", ())
    given_weights(mix, of_titles.get("mix_weights", ()))
    mode = of_titles.get("mode", "rerank")
    hybrid = of_titles.pop("hybrid", False)
    if hybrid and (mix or mode != "retrieve"):
        raise InputError(
            "--hybrid mixes the parts of one run, and searches the whole"
            " corpus: leave out --mix, and give --mode=retrieve"
        )
    folder = RunFolder(run)
    folder.read_metrics()
    encoder = _outside_encoder(str(run))
    model: Any = encoder or folder.load_model()
    tasks: Mapping[str, AnyTask]
    if encoder is None and kind_of(model).reads == "documents":
        for name in of_titles:
            raise InputError(
                f"--{name} is about rankings of titles: leave it out for the "
                f"{kind_of(model).noun} in {folder.path}"
            )
        tasks, measured = measure_documents(
            model,
            open_documents(
                data,
                folder.read_config().get("max_bad_lines", 0),
                model.max_sentences,
            ),
            split,
            min_relevant,
            baselines,
            progress,
            report,
        )
        results: dict[str, Any] = {
            name: means(of_task) for name, of_task in measured.items()
        }
        latest = results
    else:
        measure: Any = measure_titles
        if hybrid:
            measure = partial(measure_hybrid, stored=read_hybrid(folder.path))
            of_titles.pop("mode")
        task, by_query, about = measure(
            model,
            open_collection(data),
            split,
            min_relevant,
            progress,
            report,
            **of_titles,
        )
        tasks, measured = {mode: task}, {mode: by_query}
        if "hybrid_dev" in about:
            path = write_hybrid(folder.path, about["hybrid_settings"])
            report(f"wrote {path}")
        latest = {"mode": mode, **about, **means(by_query)}
        results = {mode: latest}
    if encoder is not None:
        latest["texts_per_second"] = speed = encoder.texts / encoder.seconds
        report(f"the model encodes {speed:,.0f} texts/s")
        return {split: latest}
    if split != "train":  # "train" holds the results of the training
        folder.add_metrics(split, latest)
    for name, of_task in measured.items():
        documents = len(tasks[name].documents)
        record_evaluation(
            folder.path, f"{split}/{name}", data, of_task, documents
        )
        folder.add_metrics(f"{split}/{name}", results[name])
    return {split: latest}


def measure_documents(
    model: KeyVec,
    folder: DocumentFolder,
    split: str = "test",
    min_relevant: int = 1,
    baselines: Baselines = lambda texts: {},
    progress: bool = False,
    report: Report = lambda line: None,
) -> tuple[dict[str, AnyTask], dict[str, dict[str, QueryMeasures]]]:
    """Measures a KeyVec, and baselines trained on the split train.

    For the arguments see `evaluate_run`. Returns the tasks, `"retrieve"`,
    `"cluster"` or both; and task -> system -> query id (for clustering, seed)
    -> measure -> value.
    """
    tasks = document_tasks(folder, split, min_relevant)
    texts = [document_text(one.sentences) for one in folder.of("train")]
    if bad := folder.counts.bad_lines:
        report(f"skipped bad lines: {describe_bad(bad)}")
    if texts:
        report(f"model against systems trained on {len(texts):,} documents")
    else:
        report(
            f"{folder.folder}: no document of the split train: left out tfidf,"
            " lsa, word2vec and doc2vec, which need some"
        )
    systems = {MODEL: system_of(model, progress=progress), **baselines(texts)}
    measured = {
        name: measure_systems(task, systems) for name, task in tasks.items()
    }
    for name, task in tasks.items():
        report(f"\n{split}, {name}: {task.describe()}")
        report(format_table(means(measured[name])))
    return tasks, measured


def measure_titles(
    model: Any,
    collection: Collection,
    split: str = "test",
    min_relevant: int = 1,
    progress: bool = False,
    report: Report = lambda line: None,
    *,
    mode: str = "rerank",
    depth: int = 1000,
    run_file: str | os.PathLike[str] | None = None,
    bm25_words: str = MODEL,
    batch_size: int = 2048,
    mix: Sequence[str] = (),
    mix_weights: Sequence[Any] = (),
    dev: str | None = None,
    select: str | None = None,
    teacher: str | None = None,
) -> tuple[Task, dict[str, QueryMeasures], dict[str, Any]]:
    """Measures a model of titles, BM25, mixtures and random order.

    For the arguments see `evaluate_run`. Returns the task; system -> query id
    -> measure -> value; and facts: `bm25_words`, the name of BM25's tokenizer,
    and with `mix`, the `mixture_weights` and `mixture_dev`, their results on
    dev.
    """
    task = Task.from_collection(collection, split, mode, min_relevant, depth)
    read = words_of(model)
    words = read if bm25_words == MODEL else bm25_words
    if words not in _WORDS:
        raise InputError(
            f"--bm25_words={words} is for --hybrid: expected one of"
            f" {', '.join([MODEL, *_WORDS])}"
        )
    report(
        f"{split}, {mode}: {len(task.queries)} queries,"
        f" {len(task.documents)} documents in the corpus"
    )
    if collection.has_click_counts:
        report("grades: 0 to 4, computed from the numbers of clicks")
    report(
        f"words of bm25: {_WORDS[words]}"
        f" ({'as' if words == read else 'not as'} the model reads them)"
    )
    bm25 = BM25System(tokenizer=TOKENIZERS[words])
    options = {"batch_size": batch_size, "progress": progress}
    if not isinstance(model, System):
        towers, model = model, system_of(model, bm25, **options)
        if teacher is not None:
            vectors = TeacherVectors.open(teacher)
            check_fitted(getattr(towers, "document_encoder", None), vectors)
            model = DenseSystem(
                model.encode_query,
                partial(vectors.completed, encode=model.encode_document),
            )
        if isinstance(model, PairSystem) and mode == "retrieve":
            report(f"the model reorders the {depth:,} first of bm25")
    systems: dict[str, System] = {MODEL: model, BM25: bm25}
    about: dict[str, Any] = {"bm25_words": words}
    if mix:
        weights = given_weights(mix, mix_weights)
        if weights is None:
            if not dev and split == "dev":
                raise InputError(
                    "--split=dev is what the weights of --mix would be chosen"
                    " on: give --mix_weights, or another --split or --dev"
                )
            chosen_on = Task.from_collection(
                open_collection(dev) if dev else collection,
                "dev",
                mode,
                min_relevant,
                depth,
            )
        parts = {MODEL: systems[MODEL]}
        for name in mix:
            parts[name] = open_system(name, bm25, **options)
        for name, part in parts.items():
            if isinstance(part, PairSystem) and mode == "retrieve":
                raise InputError(
                    f"--mix: {name} is a pair scorer, which only scores lists:"
                    " use --mode=rerank, or leave it out"
                )
            if isinstance(part, DenseSystem):
                parts[name] = with_cached_vectors(part)
        on_dev: dict[str, Any] = {}
        if weights is None:
            measure = select or MAIN_MEASURES[mode]
            chosen = choose_weights(parts, chosen_on, measure)
            weights = chosen.weights
            on_dev = report_choice(MIXTURE, chosen, chosen_on, measure, report)
        listed = ", ".join(f"{name} {w:.3g}" for name, w in weights.items())
        flag = ",".join(f"{weight:.10g}" for weight in weights.values())
        report(f"mixture: {listed} (--mix_weights={flag})")
        systems |= parts | {MIXTURE: Mixture(parts, weights)}
        about |= {"mixture_weights": weights, **on_dev}
    ranked = MIXTURE if mix else MODEL
    by_query = measure_systems(
        task, systems, {ranked: run_file} if run_file else None
    )
    report(format_table(means(by_query)))
    return task, by_query, about


def given_weights(
    mix: Sequence[str], mix_weights: Sequence[Any]
) -> dict[str, float] | None:
    """Checks the names and the weights of a mixture with the model.

    The result is name -> weight, with a sum of 1; `None` without weights.
    """
    names = [MODEL, *mix]
    for name in mix:
        if names.count(name) > 1 or name in (MIXTURE, RANDOM_ORDER):
            raise InputError(
                f"--mix: found {name!r}, which is named twice or is the name of"
                " a row of the results; the model of --run is always in it"
            )
    if mix_weights and not mix:
        raise InputError("--mix_weights is for --mix, which is missing")
    if not mix_weights:
        return None
    try:
        weights = [float(weight) for weight in mix_weights]
    except ValueError as error:
        raise InputError(
            f"--mix_weights={','.join(map(str, mix_weights))}: expected numbers"
            " separated by commas"
        ) from error
    try:
        return mixture_weights(names, weights)
    except InputError as error:
        raise InputError(f"--mix_weights: {error}") from error


def words_of(model: Any) -> str:
    """Returns the words that a model of titles reads, a key of `TOKENIZERS`.

    An outside encoder has no words that are known here: `"alphanumeric"`.
    """
    words = getattr(model, "words", None)
    if words is None and hasattr(model, "document_encoder"):
        words = model.document_encoder.trigrams
    split = "alphanumeric" if words is None else words.split
    return "stemmed" if split == "stems" else split


def open_system(name: str, bm25: System, **options: Any) -> System:
    """Opens a system of a mixture by its name.

    It is `bm25`, the folder of a run, which `system_of` opens with `options`,
    or an outside encoder, see `open_outside_encoder`.
    """
    if name == BM25:
        return bm25
    if _is_run(name):
        model = RunFolder(name).load_model()
        if (kind := kind_of(model)).reads == "documents":
            raise InputError(
                f"{name}: found a {kind.noun}, which reads documents: expected"
                " the run of two towers or of a pair scorer"
            )
        return system_of(model, **options)
    try:
        encode = open_outside_encoder(name)
    except InputError as error:
        raise InputError(
            f"--mix: {name!r} is not {BM25}, nor the folder of a run, nor an"
            f" encoder that can be opened ({error})"
        ) from error
    return DenseSystem(encode, encode)


class _TimedEncoder(DenseSystem):
    """An outside encoder, the texts that it has read, and the seconds."""

    def __init__(self, encode: Callable[[list[str]], Any]) -> None:
        super().__init__(self._encode, self._encode)
        self._outside = encode
        self.texts = 0
        self.seconds = 0.0

    def _encode(self, texts: list[str]) -> Any:
        start = time.perf_counter()
        vectors = self._outside(texts)
        self.seconds += time.perf_counter() - start
        self.texts += len(texts)
        return vectors


def _outside_encoder(name: str) -> _TimedEncoder | None:
    """Opens the encoder of this name, unless it is the folder of a run."""
    is_encoder = (
        "model_type" in RunFolder(name).read_config()
        if Path(name, "config.json").exists()
        else TeacherFolder(name).settings.exists()
    )
    if Path(name).is_dir() and not is_encoder:
        return None
    try:
        return _TimedEncoder(open_outside_encoder(name))
    except InputError as error:
        raise InputError(
            f"--run: {name!r} is not the folder of a run, nor an encoder that"
            f" can be opened ({error})"
        ) from error


def _is_run(name: str) -> bool:
    """Returns whether a name is the folder of a run, not of an encoder."""
    folder = RunFolder(name)
    if folder.model.exists() or not folder.config.exists():
        return folder.model.exists()
    # Models of Hugging Face have a config.json, too.
    return "model_type" not in folder.read_config()
