"""Compares rankings of titles by a model, BM25 and mixtures of systems."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.sources import open_collection
from keras_lstm_dssm.data.teacher_folder import TeacherFolder, TeacherVectors
from keras_lstm_dssm.distillation.outside_encoder import open_outside_encoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS, BM25System
from keras_lstm_dssm.evaluation.hubness import Occurrences, occurrences
from keras_lstm_dssm.evaluation.index import Encode
from keras_lstm_dssm.evaluation.measures import QueryMeasures
from keras_lstm_dssm.evaluation.mixture import (
    ChosenWeights,
    Mixture,
    choose_weights,
    mixture_weights,
)
from keras_lstm_dssm.evaluation.runs import Run, System, write_run
from keras_lstm_dssm.evaluation.systems import (
    DenseSystem,
    PairSystem,
    system_of,
    with_cached_vectors,
    words_of,
)
from keras_lstm_dssm.evaluation.task import (
    MAIN_MEASURES,
    RERANK,
    RETRIEVE,
    Task,
    format_table,
    means,
    measure_systems,
)
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.fields import RANDOM_ORDER
from keras_lstm_dssm.settings.kinds import kind_of
from keras_lstm_dssm.settings.programs import TitleSettings
from keras_lstm_dssm.training.word_fit import check_fitted

MODEL, BM25, MIXTURE = "model", "bm25", "mixture"
"""Names of systems in results."""

Report = Callable[[str], object]
"""Function that is called with each line of the results, such as `print`."""


class Measured(NamedTuple):
    """Systems that were measured on a task."""

    task: Task
    by_query: dict[str, QueryMeasures]  # name of a system -> its results
    about: dict[str, Any]  # facts to store, such as `bm25_words`
    ranked: str  # name of the evaluated system; the others are baselines
    run: Run  # the rankings of the evaluated system

    @property
    def mode(self) -> str:
        """`"rerank"` or `"retrieve"`."""
        return RERANK if self.task.depth is None else RETRIEVE


_WORDS = {
    "space": "separated by white space",
    "alphanumeric": "runs of letters and digits",
    "stemmed": "English stems, without stop words",
}


def with_mode(settings: TitleSettings, collection: Collection) -> TitleSettings:
    """Chooses a mode by the judgements, if `settings.mode` is not set."""
    if settings.mode is not None:
        return settings
    # Reranking is measured only if a judged document has grade 0. Otherwise all
    # judged documents are relevant (with `min_relevant` 1), and the order of
    # the documents has no effect on MRR and MAP.
    judged = collection.has_judged_negatives(split=settings.split)
    reranks = judged and not settings.hybrid
    return settings.replace(mode=RERANK if reranks else RETRIEVE)


def title_task(
    settings: TitleSettings, collection: Collection, split: str = ""
) -> Task:
    """Makes the task of a split, by default of `settings.split`."""
    assert settings.mode is not None, "see with_mode"
    split = split or settings.split
    minimum, depth = settings.min_relevant, settings.depth
    return Task.from_collection(
        collection, split, settings.mode, minimum, depth
    )


def given_weights(settings: TitleSettings) -> dict[str, float] | None:
    """Checks `mix` and `mix_weights`; returns name -> weight.

    The sum of the weights is 1. Without `mix_weights`, returns `None`.
    """
    mix, weights = settings.mix, settings.mix_weights
    names = [MODEL, *mix]
    for name in mix:
        if names.count(name) > 1 or name in (MIXTURE, RANDOM_ORDER):
            raise InputError(
                f"--mix: found {name!r}, which is given twice or is the name"
                " of a row of the results: leave it out; the mixture always"
                " has the model of --run"
            )
    if weights and not mix:
        raise InputError("--mix_weights is for --mix, which is missing")
    if not weights:
        return None
    try:
        numbers = list(map(float, weights))
    except ValueError as error:
        raise InputError(
            f"--mix_weights={','.join(map(str, weights))}: expected numbers"
            " separated by commas"
        ) from error
    try:
        return mixture_weights(names, numbers)
    except InputError as error:
        raise InputError(f"--mix_weights: {error}") from error


def measure_titles(
    model: Any,
    collection: Collection,
    settings: TitleSettings,
    report: Report = lambda line: None,
) -> Measured:
    """Measures a model, BM25, a random order, and a mixture if `mix` is set.

    `Measured.about` has `bm25_words`. For a mixture it also has
    `mixture_weights` and, if the weights are fitted to dev, `mixture_dev`.
    """
    settings = with_mode(settings, collection)
    split, mix = settings.split, settings.mix
    task = title_task(settings, collection)
    mode = RETRIEVE if task.depth else RERANK
    model_words = words_of(model)
    words = settings.bm25_words
    if words == MODEL:
        words = model_words
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
        f" ({'as' if words == model_words else 'not as'} the model reads them)"
    )
    bm25 = BM25System(tokenizer=TOKENIZERS[words], fields=task.fields)
    if not isinstance(model, System):
        encoder = getattr(model, "document_encoder", None)
        model = system_of(model, bm25, **settings.encoding)
        if settings.teacher is not None:
            vectors = TeacherVectors.open(settings.teacher)
            check_fitted(encoder, vectors)
            model = DenseSystem(
                model.encode_query,
                partial(vectors.completed, encode=model.encode_document),
            )
        if isinstance(model, PairSystem) and mode == "retrieve":
            report(f"the model reorders bm25's first {settings.depth:,} titles")
    systems: dict[str, System] = {MODEL: model, BM25: bm25}
    about: dict[str, Any] = {"bm25_words": words}
    if mix:
        weights = given_weights(settings)
        if weights is None:
            if not settings.dev and split == "dev":
                raise InputError(
                    "--split=dev: the weights of --mix would be fitted to the"
                    " split that is measured: give --mix_weights, or another"
                    " --split or --dev"
                )
            dev = collection
            if settings.dev:
                dev = open_collection(settings.dev, collection.fields)
            dev_task = title_task(settings, dev, "dev")
        parts = {MODEL: systems[MODEL]}
        for name in mix:
            parts[name] = open_system(name, bm25, **settings.encoding)
        for name, system in parts.items():
            if isinstance(system, PairSystem) and mode == "retrieve":
                raise InputError(
                    f"--mix: {name} is a pair scorer, which only scores lists:"
                    " use --mode=rerank, or leave it out"
                )
            if isinstance(system, DenseSystem):
                parts[name] = with_cached_vectors(system)
        on_dev: dict[str, Any] = {}
        if weights is None:
            measure = settings.select or MAIN_MEASURES[mode]
            chosen = choose_weights(parts, dev_task, measure)
            weights = chosen.weights
            on_dev = report_choice(MIXTURE, chosen, dev_task, measure, report)
        by_name = ", ".join(f"{name} {w:.3g}" for name, w in weights.items())
        flag = ",".join(f"{weight:.10g}" for weight in weights.values())
        report(f"mixture: {by_name} (--mix_weights={flag})")
        systems |= parts | {MIXTURE: Mixture(parts, weights)}
        about |= {"mixture_weights": weights, **on_dev}
    ranked = MIXTURE if mix else MODEL
    return measured_systems(task, systems, ranked, about, settings, report)


def measured_systems(
    task: Task,
    systems: Mapping[str, System],
    ranked: str,
    about: dict[str, Any],
    settings: TitleSettings,
    report: Report,
) -> Measured:
    """Measures systems, prints a table, and writes a run file if requested."""
    runs: dict[str, Run] = {}
    pages: dict[str, Occurrences] = {}

    def on_run(name: str, run: Run) -> None:
        pages[name] = occurrences(run, len(task.documents))
        if name == ranked:
            runs[name] = run

    by_query = measure_systems(task, systems, on_run)
    if settings.run_file:
        write_run(settings.run_file, runs[ranked], ranked)
    report(format_table(means(by_query)))
    if task.depth:
        report(
            "pages (10 titles each) with the most frequent title (skewness): "
            + ", ".join(
                f"{name} {100 * page.share:.1f} % ({page.skewness:.1f})"
                for name, page in pages.items()
            )
        )
        about["pages"] = {
            name: {"share": page.share, "skewness": page.skewness}
            for name, page in pages.items()
        }
    return Measured(task, by_query, about, ranked, runs[ranked])


def report_choice(
    name: str, chosen: ChosenWeights, dev: Task, measure: str, report: Report
) -> dict[str, Any]:
    """Prints the weights' results on dev; returns `{name}_dev` -> results."""
    alone = ", ".join(
        f"{part} {100 * value:.2f}" for part, value in chosen.alone.items()
    )
    report(
        f"{name}: {measure} on the {len(dev.queries)} queries of dev"
        f" {100 * chosen.value:.2f} (alone: {alone})"
    )
    return {
        f"{name}_dev": {
            measure: chosen.value,
            "alone": chosen.alone,
            "queries": len(dev.queries),
        }
    }


def open_system(name: str, bm25: System, **options: Any) -> System:
    """Opens a part of a mixture: BM25, a run or an outside encoder."""
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
    encode = _outside_encoder("mix", name, f"{BM25}, nor the folder of a run")
    return DenseSystem(encode, encode)


class TimedEncoder(DenseSystem):
    """Counts texts that an outside encoder encodes, and measures the time."""

    def __init__(self, encode: Encode) -> None:
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


def timed_encoder(name: str) -> TimedEncoder | None:
    """Opens an outside encoder, or returns `None` for the folder of a run."""
    is_encoder = (
        "model_type" in RunFolder(name).read_config()
        if Path(name, "config.json").exists()
        else TeacherFolder(name).settings.exists()
    )
    if Path(name).is_dir() and not is_encoder:
        return None
    return TimedEncoder(_outside_encoder("run", name, "the folder of a run"))


def _outside_encoder(flag: str, name: str, expected: str) -> Encode:
    try:
        return open_outside_encoder(name)
    except InputError as error:
        raise InputError(
            f"--{flag}: {name!r} is not {expected}, nor an encoder that can be"
            f" opened ({error})"
        ) from error


def _is_run(name: str) -> bool:
    """Returns whether a name is the folder of a run, not an encoder."""
    folder = RunFolder(name)
    if folder.model.exists() or not folder.config.exists():
        return folder.model.exists()
    # The config.json of a Hugging Face model has a model_type.
    return "model_type" not in folder.read_config()
