r"""What a trained model keeps of a text: pictures and tables on one page.

Example:
  lstm-dssm-analyze --run=RUN --query="hotels in shanghai" \
      --document="shanghai hotels accommodation" --output=report.html
  lstm-dssm-analyze --run=RUN --data=api --claims --output=report.html

The page has the paper's Figs. 4 to 7 and Tables I to III for your texts, the
attenuation of each word, the nearest titles and a map of titles; it needs no
other file. With `--claims` it also tests, on the queries and titles of the
data, whether the words that the model drops are stop words, what the
keywords carry of the cosine, and whether the words of a cell are alike.
With `--projector` titles and vectors go into RUN/logs for TensorBoard.
"""

import sys
from typing import Any

from absl import flags

from keras_lstm_dssm.analysis.analysis_report import Material, write_report
from keras_lstm_dssm.analysis.claims import LABELS, Claim, measure_claims
from keras_lstm_dssm.analysis.report_input import Options, open_corpus
from keras_lstm_dssm.analysis.title_map import METHODS, write_projector
from keras_lstm_dssm.analysis.word_effects import attenuation
from keras_lstm_dssm.data.text_files import text_lines
from keras_lstm_dssm.files import check_writable
from keras_lstm_dssm.tools.program import new_flags, program
from keras_lstm_dssm.training import RunFolder

_STANDARD = Options()

FLAGS = new_flags()
flags.DEFINE_string(
    "run", None, "Folder that training wrote.", flag_values=FLAGS
)
flags.DEFINE_string("output", None, "The HTML page.", flag_values=FLAGS)
flags.DEFINE_string(
    "query", "hotels in shanghai", "A query, by default the paper's.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_string(
    "document",
    "shanghai hotels accommodation hotel in shanghai discount and reservation",
    "A title to set beside it, by default the paper's.",
    flag_values=FLAGS,
)
flags.DEFINE_string(
    "data", None,
    "`api`, a BEIR folder or click files, for titles and queries; by default "
    "what the run was trained on.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_string(
    "queries", None,
    "Queries for the topics of the cells, one a line; by default the data's.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "cells", _STANDARD.cells, "Most active cells looked at.", 1,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "topic_cells", _STANDARD.topic_cells,
    "Most active cells of each query, for the topics.", 1,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_float(
    "change", _STANDARD.change,
    "A word is assigned to a cell that changes at it by this share of its "
    "final activation.", 0,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_float(
    "share", _STANDARD.share,
    "A keyword is assigned to more than this share of the cells.", 0, 1,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_enum(
    "map", _STANDARD.map, METHODS, "How titles are laid out.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_integer(
    "map_titles", _STANDARD.map_titles, "Titles on the map.", 3,
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_string(
    "pictures", None, "Also keep the pictures in this folder.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_bool(
    "claims", False, "Also test the paper's claims on the data.",
    flag_values=FLAGS,
)  # fmt: skip
flags.DEFINE_bool(
    "projector", False, "Also write RUN/logs for TensorBoard's projector.",
    flag_values=FLAGS,
)  # fmt: skip


def main(_: list[str]) -> dict[str, Any]:
    """Writes the page; returns the words' effects and the claims."""
    check_writable(FLAGS.output)
    run = RunFolder(FLAGS.run)
    history = run.read_history()
    queries = (
        [line for line in text_lines(FLAGS.queries) if line.strip()]
        if FLAGS.queries
        else None
    )
    model = run.load_model()
    corpus = open_corpus(FLAGS.data or run.read_config().get("data", ""))
    options = Options(*(FLAGS[name].value for name in Options._fields))
    claims = (
        measure_claims(
            model, corpus.pairs, corpus.contexts,
            options.cells, options.change, options.share,
        )
        if FLAGS.claims
        else []
    )  # fmt: skip
    material = Material(
        model,
        FLAGS.query,
        FLAGS.document,
        queries or [pair.query for pair in corpus.pairs],
        corpus.titles,
        history,
        claims,
    )
    write_report(FLAGS.output, material, options, FLAGS.pictures)
    print(f"wrote {FLAGS.output}")
    if FLAGS.projector:
        vectors = model.document_encoder.encode(corpus.titles)
        write_projector(run.logs, corpus.titles, vectors)
        print(f"titles for the projector: tensorboard --logdir={run.logs}")
    _show(claims)
    towers = {"query": model.query_encoder, "document": model.document_encoder}
    return {
        **{
            side: [e._asdict() for e in attenuation(tower, FLAGS[side].value)]
            for side, tower in towers.items()
        },
        "claims": [
            {**claim._asdict(), "finding": claim.finding._asdict()}
            for claim in claims
        ],
    }


def _show(claims: list[Claim]) -> None:
    """Prints the figures, those of one claim together."""
    for name, label in LABELS.items():
        own = [claim for claim in claims if claim.claim == name]
        if own:
            print(label)
        for claim in own:
            found, chance, p, number = claim.finding
            print(
                f"  {claim.side:6} {claim.model:10} found {found:6.3f}"
                f"  chance {chance:6.3f}  p {p:.4f}  of {number:,}"
            )


run = program(main, FLAGS, __doc__, required=["run", "output"])

if __name__ == "__main__":
    sys.exit(run())
