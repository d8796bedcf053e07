"""Evaluates the model of a run folder, and stores the results in the run."""

import os
from collections.abc import Callable, Mapping
from typing import Any

from keras_lstm_dssm.data.click_log import describe_bad
from keras_lstm_dssm.data.documents import DocumentFolder
from keras_lstm_dssm.data.sources import (
    open_collection,
    open_documents,
    training_queries,
)
from keras_lstm_dssm.data.statistics import query_clicks
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluate.failures import tell_failures
from keras_lstm_dssm.evaluate.hybrid import measure_hybrid
from keras_lstm_dssm.evaluate.titles import (
    MODEL,
    Report,
    given_weights,
    measure_titles,
    timed_encoder,
)
from keras_lstm_dssm.evaluation.measures import QueryMeasures
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.evaluation.systems import system_of
from keras_lstm_dssm.evaluation.task import (
    AnyTask,
    document_tasks,
    document_text,
    format_table,
    means,
    measure_systems,
)
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.model_cards import record_evaluation
from keras_lstm_dssm.models.keyvec import KeyVec
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.kinds import kind_of
from keras_lstm_dssm.settings.programs import TitleSettings

Baselines = Callable[[list[str]], Mapping[str, System]]
"""Function that makes baselines from the texts of the training documents. The
result maps the name of each baseline to its system."""


def evaluate_run(
    run: str | os.PathLike[str],
    data: str,
    split: str = "test",
    min_relevant: int = 1,
    baselines: Baselines = lambda texts: {},
    progress: bool = False,
    report: Report = lambda line: None,
    **title_options: Any,
) -> dict[str, Any]:
    """Measures the model of a run, and stores the results in the run.

    Two towers and pair scorers are compared with BM25 and a random order. A
    `KeyVec` is compared with `baselines` on retrieval and clustering. Results
    are added to `CARD.md`, and to `metrics.json` under keys such as `"test"`
    and `"test/retrieve"`. Results of an outside encoder are not stored.

    Args:
        run: The run folder, or an outside encoder, see `open_outside_encoder`.
        data: The data, see `open_collection`; for a `KeyVec`, see
            `open_documents`.
        split: Split of the data. Default `"test"`.
        min_relevant: Grade from which a document is relevant. Default 1.
        baselines: Function that makes the baselines of a `KeyVec`, such as
            `papers.baselines.document_baselines`. Default: no baselines.
        progress: Whether to show a progress bar of encoding. Default `False`.
        report: Function that is called with each line of the results, such as
            `print`. Default: lines are not shown.
        **title_options: Other fields of `TitleSettings`. A `KeyVec` does not
            support them.

    Returns:
        Two towers and pair scorers: split -> a dictionary. The keys are `mode`,
            facts such as `bm25_words`, and the name of each system. The value
            of a system is measure -> number from 0 to 1. The option `queries`
            adds `verdict` and `failures`, which are not stored.
        Outside encoders: the same dictionary, with `texts_per_second`.
        `KeyVec`: split -> task -> system -> measure -> value, at most 1.
        `verdict`: a comparison with BM25 by one `measure`. It has the
            `difference` of the means; `interval`, half the width of the 95 %
            interval; `p` of a paired randomisation test; and a `sentence`.
        `failures`: `measure` is the name of the measure. `worst` lists the
            worst queries. An entry has `query`; the value of the measure, under
            the measure's name; `rank` of the first relevant title; `clicks`;
            `clicked`, the relevant titles; and `found`, the first results. If
            the data has numbers of clicks, there are also `frequent`, `head`
            and `tail`. `frequent` lists the most frequent queries. `head`
            is about the most frequent queries, which together have half of all
            clicks. It has the number of `queries` and each system's mean.
            `tail` has the same for all other queries. In retrieval, `on_pages`
            lists the titles that are most often among the first ten.

    Raises:
        InputError: The run or the data cannot be read, the split has nothing
            to measure on, or an argument is wrong.

    Example:
    >>> results = evaluate_run("RUN", "api", mode="retrieve")
    >>> results["test"]["model"]["mrr@10"] > results["test"]["bm25"]["mrr@10"]
    True
    """
    TitleSettings.check_names(title_options)
    settings = TitleSettings(split, min_relevant, progress, **title_options)
    # Paths and weights are checked first, because the evaluation takes long.
    for path in (settings.run_file, settings.html):
        if path:
            check_writable(path)
    given_weights(settings)
    folder = RunFolder(run)
    folder.read_metrics()
    encoder = timed_encoder(str(run))
    model: Any = encoder or folder.load_model()
    tasks: Mapping[str, AnyTask]
    findings: dict[str, Any] = {}
    if encoder is None and kind_of(model).reads == "documents":
        for name in title_options:
            raise InputError(
                f"--{name} is about rankings of titles: leave it out for the "
                f"{kind_of(model).noun} in {folder.path}"
            )
        max_bad_lines = folder.read_config().get("max_bad_lines", 0)
        documents = open_documents(data, max_bad_lines, model.max_sentences)
        tasks, measured = measure_documents(
            model, documents, split, min_relevant, baselines, progress, report
        )
        results: dict[str, Any] = {
            name: means(by_system) for name, by_system in measured.items()
        }
        latest = results
    else:
        fields = None if encoder else folder.read_fields()
        collection = open_collection(data, fields)
        if settings.hybrid:
            stored = folder.read_hybrid()
            queries = training_queries(folder.read_config())
            evaluation = measure_hybrid(
                model, collection, settings, report, stored, queries
            )
        else:
            evaluation = measure_titles(model, collection, settings, report)
        mode, about = evaluation.mode, evaluation.about
        tasks, measured = {mode: evaluation.task}, {mode: evaluation.by_query}
        if "hybrid_dev" in about:
            report(f"wrote {folder.write_hybrid(about['hybrid_settings'])}")
        latest = {"mode": mode, **about, **means(evaluation.by_query)}
        results = {mode: latest}
        if settings.queries:
            findings = tell_failures(
                evaluation, query_clicks(collection, split), settings, report
            )
    if encoder is not None:
        latest["texts_per_second"] = speed = encoder.texts / encoder.seconds
        report(f"the model encodes {speed:,.0f} texts/s")
        return {split: {**latest, **findings}}
    if split != "train":  # the key "train" has training metrics
        folder.add_metrics(split, latest)
    for name, by_system in measured.items():
        count = len(tasks[name].documents)
        record_evaluation(
            folder.path, f"{split}/{name}", data, by_system, count
        )
        folder.add_metrics(f"{split}/{name}", results[name])
    return {split: {**latest, **findings}}


def measure_documents(
    model: KeyVec,
    folder: DocumentFolder,
    split: str = "test",
    min_relevant: int = 1,
    baselines: Baselines = lambda texts: {},
    progress: bool = False,
    report: Report = lambda line: None,
) -> tuple[dict[str, AnyTask], dict[str, dict[str, QueryMeasures]]]:
    """Measures a `KeyVec`, and baselines trained on the split `train`.

    Returns two dictionaries: task name -> task; and task name -> system ->
    query id -> measure -> value. Clustering has seeds in place of query ids.
    """
    tasks = document_tasks(folder, split, min_relevant)
    texts = [document_text(doc.sentences) for doc in folder.of("train")]
    if bad := folder.counts.bad_lines:
        report(f"skipped bad lines: {describe_bad(bad)}")
    if texts:
        report(f"model against systems trained on {len(texts):,} documents")
    else:
        report(
            f"{folder.folder}: no document of the split train: left out tfidf,"
            " lsa, word2vec and doc2vec, which are trained on documents"
        )
    systems = {MODEL: system_of(model, progress=progress), **baselines(texts)}
    measured = {
        name: measure_systems(task, systems) for name, task in tasks.items()
    }
    for name, task in tasks.items():
        report(f"\n{split}, {name}: {task.describe()}")
        report(format_table(means(measured[name])))
    return tasks, measured
