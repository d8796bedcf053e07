r"""Train and measure the systems of a paper's tables on one or more data sets.

Example:
  lstm-dssm-table --paper=mv_lstm --data=FOLDER,api_sentences --seeds=3 \
      --output=OUT
  lstm-dssm-table --paper=table_iv --data=FOLDER --systems=bm25,lstm_96 \
      --output=OUT

`--paper=table_iv` makes Table IV of Palangi et al. 2016. `--data` is `api` or a
BEIR folder with the splits dev and test.

`--paper=mv_lstm` makes Tables 2, 3 and 5 of Wan et al. 2016. Pair scorers rank
the judged answers of each query. If answers have equal scores, each measure is
averaged over all orders of these answers. `--data` is `api_sentences` or a BEIR
folder with the splits train, dev and test.

`--paper=keyvec` makes Tables 1 and 2 of Bi and Ma 2017: retrieval and
clustering by vectors of documents. `--data` is `api_documents` or a folder of
documents with the splits train, dev and test. The splits dev and test have
queries, classes or both.

The epoch of each neural system is chosen on dev. A small search on dev chooses
the learning rate and, for table_iv, gamma. The search is the same for all
systems, except that a few systems, such as best, have fixed values. The
tokenizers of baselines, and k1 and b of BM25, are also chosen on dev.

OUT has these files:
  table.md, table.json, table.html, chart.png, dev.png and dev.csv;
  for table_iv: figure_7.png and figure_7.csv;
  with --set misspelled=0.1,0.2: robustness.md, .json and .png;
  with --pairs: curve.csv and curve.MODE.png;
  systems/NAME/seed_S/ with the measures and the TREC runs.
If --data names several data sets, separated by commas, each data set has a
folder in OUT, and OUT/table.* show all data sets. If the command is repeated,
even with more systems or seeds, it runs only what is missing. If a system
failed, the table has the other systems, and the exit code is 1.
"""

import os
from collections.abc import Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError, check_installed
from keras_lstm_dssm.files import lock_folder, write_json
from keras_lstm_dssm.settings.fields import help_of
from keras_lstm_dssm.settings.programs import (
    LEARNING_CURVES,
    TABLE_DEFAULTS,
    TableSettings,
)
from keras_lstm_dssm.tools.settings_flags import define_field

program = Program(__doc__, required=["paper", "data", "output"])
FLAGS = program.flags
program.enum("paper", None, [*TABLE_DEFAULTS], "Paper whose tables to make.")
program.list(
    "data", None,
    "Data sets, separated by commas: api, api_sentences, or folders.",
)  # fmt: skip
program.string("output", None, "Folder of the table.")
program.list("systems", ["all"], "Systems, such as bm25,lstm_96, or `all`.")
program.integer("seeds", 3, "Number of trainings of each system.", 1)
program.list(
    "pairs", None,
    "Also train on about these numbers of clicks (learning curve): 1000,10000.",
)  # fmt: skip
program.integer(
    "threads", None, "Number of processor cores to use; by default all.", 1
)
program.define_set("Another setting of the tables")

_NAMED = ("epochs", "pairs")
"""Settings that have flags; other settings are set by `--set`."""


def _define_settings() -> None:
    texts = help_of(TableSettings)
    for field in fields(TableSettings):
        if papers := field.metadata.get("papers", ()):
            text = texts[field.name] + _defaults(field, papers)
            is_named = field.name in _NAMED
            flag_set = program if is_named else program.settings
            define_field(flag_set, field, None, text)


def _defaults(field: Field[Any], papers: Sequence[str]) -> str:
    """Returns a sentence for the help: a setting's defaults for each paper."""
    texts = {}
    for paper in papers:
        value = TABLE_DEFAULTS[paper].get(field.name, field.default)
        numbers = value if isinstance(value, tuple) else (value,)
        if numbers and value is not None:
            texts[paper] = ",".join(
                text if isinstance(text, str) else f"{text:g}"
                for text in numbers
            )
    if not texts:
        return ""
    if len(set(texts.values())) == 1:
        return f" By default {next(iter(texts.values()))}."
    shown = ", ".join(f"{text} ({paper})" for paper, text in texts.items())
    return f" By default {shown}."


_define_settings()


@program.main
def main(_: list[str]) -> dict[str, Any]:
    """Makes the tables of a paper on each data set of --data."""
    if FLAGS.threads:
        # TensorFlow, PyTorch and BLAS read these variables when they start.
        for variable in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
            os.environ[variable] = str(FLAGS.threads)
    for module, extra in (("gensim", "baselines"), ("matplotlib", "analysis")):
        check_installed(module, extra)  # before the data are read
    load_package()
    from keras_lstm_dssm.papers import PAPERS, choose_rows
    from keras_lstm_dssm.papers.report import write_overview
    from keras_lstm_dssm.papers.table import make_table, reasons

    name = FLAGS.paper
    paper = PAPERS[name]
    rows = choose_rows(paper.rows, FLAGS.systems)
    settings, pairs = _chosen_settings(name)
    output = Path(FLAGS.output)
    folders = _table_folders(output, FLAGS.data)
    summaries: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    with lock_folder(output, "making a table"):
        for data, folder in folders.items():
            summaries[folder.name], failed_here = make_table(
                folder,
                paper,
                rows,
                TableSettings(data, **settings),
                FLAGS.seeds,
                pairs,
            )
            for system, reason in failed_here.items():
                where = "" if folder == output else f" on {folder.name}"
                failed[system + where] = reason
        if len(folders) == 1:
            (result,) = summaries.values()
        else:
            result = write_overview(output, paper.title, summaries)
    print((output / "table.md").read_text(encoding="utf-8"))
    if failed:
        if FLAGS.json:
            write_json(FLAGS.json, result)
        raise InputError(
            f"{output}: the table lacks what failed ({reasons(failed)}):"
            " remove the cause and run the same command again, which runs only"
            " what is missing"
        )
    return result


def _chosen_settings(name: str) -> tuple[dict[str, Any], tuple[int, ...]]:
    settings = dict(TABLE_DEFAULTS[name])
    pairs: tuple[float, ...] = ()
    if FLAGS.pairs is not None:
        if name not in LEARNING_CURVES:
            raise _not_for_paper("pairs", name)
        pairs = _numbers("pairs", FLAGS.pairs, 1)
    for field in fields(TableSettings):
        bounds = field.metadata
        flag, papers = bounds.get("flag", field.name), bounds.get("papers")
        if not papers:
            continue
        value = program.flag(flag).value
        if value is None:
            continue
        if name not in papers:
            raise _not_for_paper(flag, name)
        if isinstance(value, list):
            least, most = bounds["least"], bounds.get("most", float("inf"))
            value = _numbers(flag, value, least, most)
            if not value and field.default:
                raise InputError(
                    f"{program.shown(flag)}: found nothing, expected a number"
                )
        settings[field.name] = value
    if "misspelled" in settings:  # rate 0 is always measured
        settings["misspelled"] = tuple(
            rate for rate in settings["misspelled"] if rate
        )
    return settings, tuple(map(int, pairs))


def _not_for_paper(flag: str, paper: str) -> InputError:
    return InputError(
        f"{program.shown(flag)} is not for --paper={paper}: leave it out"
    )


def _numbers(
    flag: str, texts: Sequence[str], least: float, most: float = float("inf")
) -> tuple[float, ...]:
    try:
        numbers = tuple(float(text) for text in texts)
        if all(least <= number <= most for number in numbers):
            return numbers
    except ValueError:
        pass
    raise InputError(
        f"{program.shown(flag)}={','.join(texts)}: expected numbers from"
        f" {least:g} to {most:g}, separated by commas"
    )


def _table_folders(output: Path, data: Sequence[str]) -> dict[str, Path]:
    if len(data) == 1:
        return {data[0]: output}
    folders = {name: output / Path(name).name for name in data}
    if len(set(folders.values())) < len(data):
        raise InputError(
            f"--data={','.join(data)}: found two data sets of one name,"
            " expected different names: rename a folder"
        )
    return folders


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
