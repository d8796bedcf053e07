"""Shows, on a page of HTML, what a trained model represents of a text.

This is the work of the program lstm-dssm-analyze. Its help and its flags are in
`tools/flags/analyze.py`, which is imported first and without TensorFlow.
"""

import sys
from typing import Any

from keras_lstm_dssm.analysis.claims import (
    CLAIM_LABELS,
    ClaimResult,
    measure_claims,
)
from keras_lstm_dssm.analysis.keyvec_report import (
    document_figures,
    name_of,
    write_document_report,
)
from keras_lstm_dssm.analysis.maps import write_projector
from keras_lstm_dssm.analysis.report import write_analysis_report
from keras_lstm_dssm.analysis.scorer_report import (
    ComparedQuery,
    check_matrix,
    example_answers,
    write_scorer_report,
)
from keras_lstm_dssm.analysis.tower_report import (
    ReportInput,
    ReportTexts,
    read_report_documents,
    read_report_texts,
)
from keras_lstm_dssm.analysis.words import attenuation
from keras_lstm_dssm.data.click_log import describe_bad
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.model_cards.record import card_tables
from keras_lstm_dssm.models import (
    KeyVec,
    KeyVecRecipe,
    PairScorer,
    recipe_from_dict,
)
from keras_lstm_dssm.ranker import Ranker
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.choices import DEFAULT_SALIENCE
from keras_lstm_dssm.settings.reports import ReportSettings
from keras_lstm_dssm.text_files import text_lines
from keras_lstm_dssm.tools.analyze_flags import check_used
from keras_lstm_dssm.tools.flags.analyze import COMMAND_LINE, FLAGS
from keras_lstm_dssm.tools.train_flags import allowed_bad_lines
from keras_lstm_dssm.training import DocumentTargets
from keras_lstm_dssm.training.document_targets import TARGETS_FILE


def main(_: list[str]) -> dict[str, Any]:
    """Write the page; return the effects of the words, and the claims."""
    check_writable(FLAGS.output)
    run = RunFolder(FLAGS.run)
    history = run.read_history()
    queries = []
    if FLAGS.queries:
        queries = [line for line in text_lines(FLAGS.queries) if line.strip()]
    model = run.load_model()
    if isinstance(model, PairScorer):
        return _analyze_scorer(model, run)
    if isinstance(model, KeyVec):
        return _analyze_documents(model, run)
    if isinstance(model, Ranker):
        raise InputError(
            f"{run.path}: found a ranker, which has no figures of its own: "
            "expected another run; metrics.json says what its trees compare"
        )
    check_used(FLAGS, ("salience", "csv"), f"the two towers in {run.path}")
    texts = _read_texts(run)
    settings = ReportSettings(
        *(FLAGS[name].value for name in ReportSettings._fields)
    )
    claims = (
        measure_claims(
            model, texts.pairs, texts.contexts,
            settings.cells, settings.change, settings.share,
        )
        if FLAGS.claims
        else []
    )  # fmt: skip
    report_input = ReportInput(
        model,
        FLAGS.query,
        FLAGS.document,
        queries or [pair.query for pair in texts.pairs],
        texts.titles,
        history,
        claims,
        card_tables(run.path),
    )
    write_analysis_report(FLAGS.output, report_input, settings, FLAGS.pictures)
    print(f"wrote {FLAGS.output}")
    if FLAGS.projector:
        vectors = model.document_encoder.encode(texts.titles)
        write_projector(run.logs, texts.titles, vectors)
        print(f"titles for the projector: tensorboard --logdir={run.logs}")
    _print_claims(claims)
    towers = {"query": model.query_encoder, "document": model.document_encoder}
    return {
        **{
            side: [e._asdict() for e in attenuation(tower, FLAGS[side].value)]
            for side, tower in towers.items()
        },
        "claims": [
            {**claim._asdict(), "comparison": claim.comparison._asdict()}
            for claim in claims
        ],
    }


def _analyze_scorer(scorer: PairScorer, run: RunFolder) -> dict[str, Any]:
    """Write the page of a pair scorer; return the cells of each pair."""
    check_used(
        FLAGS,
        ("claims", "projector", "queries", "salience", "csv"),
        f"the pair scorer in {run.path}",
    )
    check_matrix(scorer)
    data, max_bad_lines, min_relevant = _data(run)
    compared = [
        ComparedQuery(
            one.query, {"right answer": one.right, "wrong answer": one.wrong}
        )
        for one in example_answers(
            scorer, data, FLAGS.examples, min_relevant, max_bad_lines
        )
    ]
    if FLAGS["query"].present or FLAGS["document"].present:
        compared.insert(
            0, ComparedQuery(FLAGS.query, {"document": FLAGS.document})
        )
    matrices = write_scorer_report(
        FLAGS.output, scorer, compared, run.read_history(), FLAGS.pictures,
        card_tables(run.path),
    )  # fmt: skip
    print(f"wrote {FLAGS.output}")
    return {
        "pairs": [
            {
                "query": query,
                "document": document,
                "kind": kind,
                "score": matrix.score,
                "cells": [cell._asdict() for cell in matrix.strongest],
            }
            for (query, documents), of_query in zip(
                compared, matrices, strict=True
            )
            for (kind, document), matrix in zip(
                documents.items(), of_query, strict=True
            )
        ]
    }


def _analyze_documents(model: KeyVec, run: RunFolder) -> dict[str, Any]:
    """Write the page of a KeyVec, and perhaps CSV files; return the figures."""
    check_used(
        FLAGS,
        ("claims", "queries", "query", "document"),
        f"the KeyVec in {run.path}",
    )
    data, max_bad_lines, _ = _data(run)
    config = run.read_config()
    teacher, theta = FLAGS.salience, None
    if teacher is None:
        teacher = config.get("salience") or DEFAULT_SALIENCE
        theta = DocumentTargets.from_file(run.path / TARGETS_FILE).counts.theta
    recipe = recipe_from_dict(config["recipe"])
    assert isinstance(recipe, KeyVecRecipe)
    given = read_report_documents(
        data, teacher, theta, model.max_sentences, max_bad_lines,
        recipe.key_words_of,
    )  # fmt: skip
    if given.bad_lines:
        print(f"skipped bad lines: {describe_bad(given.bad_lines)}")
    figures = document_figures(
        model, given, FLAGS.examples, FLAGS.map, FLAGS.map_titles
    )
    write_document_report(
        FLAGS.output, given, figures, run.read_history(), FLAGS.pictures,
        card_tables(run.path),
    )  # fmt: skip
    print(f"wrote {FLAGS.output}")
    if FLAGS.csv:
        figures.write_csv(FLAGS.csv)
    if FLAGS.projector:
        titles = [name_of(document) for document in given.documents]
        sentences = [document.sentences for document in given.documents]
        write_projector(run.logs, titles, model.encode(sentences))
        print(f"documents for the projector: tensorboard --logdir={run.logs}")
    return figures.as_json()


def _data(run: RunFolder) -> tuple[str, int, int]:
    """Return --data or, by default, the run's, and how training read them.

    Returns:
        The data, the bad lines that may be skipped, and the grade of a
        relevant document.
    """
    config = {} if FLAGS.data else run.read_config()
    max_bad_lines = allowed_bad_lines(FLAGS)
    if not FLAGS["on_bad_line"].present:
        max_bad_lines = config.get("max_bad_lines", max_bad_lines)
    data = FLAGS.data or config.get("data", "")
    return data, max_bad_lines, config.get("min_relevant", 1)


def _read_texts(run: RunFolder) -> ReportTexts:
    """Read --data or, by default, the run's data as training read it."""
    data, max_bad_lines, _ = _data(run)
    texts = read_report_texts(data, max_bad_lines)
    if texts.bad_lines:
        print(f"skipped bad lines: {describe_bad(texts.bad_lines)}")
    return texts


def _print_claims(claims: list[ClaimResult]) -> None:
    """Print the results of the claims, grouped by claim."""
    for name, label in CLAIM_LABELS.items():
        of_claim = [result for result in claims if result.claim == name]
        if of_claim:
            print(label)
        for _, side, model, (value, chance, p, number) in of_claim:
            print(
                f"  {side:8} {model:10} value {value:6.3f}"
                f"  chance {chance:6.3f}  p {p:.4f}  of {number:,}"
            )


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
