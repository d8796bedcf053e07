r"""Train and measure the systems of a paper's tables on one or more data sets.

Example:
  lstm-dssm-table --paper=mv_lstm --data=FOLDER,api_sentences --seeds=3 \
      --output=OUT
  lstm-dssm-table --paper=table_iv --data=FOLDER --systems=bm25,lstm_96 \
      --output=OUT

`--paper=table_iv` (or lstm_dssm) makes Table IV of Palangi et al. 2016, see
lstm-dssm-table_iv. `--paper=mv_lstm` makes Tables 2, 3 and 5 of Wan et al.
2016: pair scorers on the judged lists of each query, trained on the lists of
the split train. P@1, MRR and the other measures are exact expectations over
the orders of equal scores. `--data` is `api_sentences`, a BEIR folder with the
splits train, dev and test, or several separated by commas.

`--paper=keyvec` makes Tables 1 and 2 of Bi and Ma 2017: retrieval and
clustering by vectors of documents. `--data` is `api_documents` or a folder of
documents with the splits train, dev and test, queries of dev and test, or
classes, or both.

The learning rate is chosen on dev by the same small search for all neural
systems, and so is the epoch; the words of baselines, and k1 and b of BM25, are
chosen on dev, too.

OUT holds table.md, table.json, table.html, chart.png, dev.png and .csv; with
--misspelled robustness.md, .json and .png; and systems/NAME/seed_S/ with the
measures and the TREC runs. With several data sets each has a folder in OUT,
and OUT/table.* show all of them. Finished systems are not run again, so that
a table can be interrupted, and more systems or seeds can be named later. The
exit code is 1 if a system failed; the table then holds the others.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from absl import flags

from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import lock_folder, write_json
from keras_lstm_dssm.settings.fields import help_of
from keras_lstm_dssm.settings.papers import (
    LEARNING_CURVES,
    PAPER_ALIASES,
    PAPER_DEFAULTS,
    TableSettings,
)
from keras_lstm_dssm.tools.settings_flags import define_field


def table_program(doc: str | None, papers: Sequence[str]) -> Program:
    """Makes a program that makes the tables of some papers."""
    which = ["paper"] if len(papers) > 1 else []
    program = Program(doc, required=[*which, "data", "output"])
    if which:
        names = [*papers, *(a for a, p in PAPER_ALIASES.items() if p in papers)]
        program.enum("paper", None, names, "Whose tables to make.")
    documents = (
        "; for keyvec `api_documents` or folders of documents."
        if "keyvec" in papers
        else "."
    )
    program.list(
        "data", None,
        "`api`, `api_sentences`, a BEIR folder, or several of them" + documents,
    )  # fmt: skip
    program.string("output", None, "Folder of the table.")
    program.list("systems", ["all"], "Systems, such as bm25,lstm_96, or `all`.")
    program.integer("seeds", 3, "Number of trainings of each system.", 1)
    texts = help_of(TableSettings)
    for field in fields(TableSettings):
        users = [p for p in papers if p in field.metadata.get("papers", ())]
        if users:
            text = texts[field.name] + _defaults(field, users)
            define_field(program, field, None, text)
    if {*papers} & {*LEARNING_CURVES}:
        program.list(
            "pairs", None,
            "Also train on about this many clicks, for a learning curve:"
            " 1000,10000.",
        )  # fmt: skip
    program.integer(
        "threads", None, "Number of processor cores to use; by default all.", 1
    )
    return program


def _defaults(field: Field[Any], papers: Sequence[str]) -> str:
    """Formats the defaults of a setting, by paper, for the help."""
    texts = {}
    for paper in papers:
        value = PAPER_DEFAULTS[paper].get(field.name, field.default)
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


def make_tables(values: flags.FlagValues, name: str) -> dict[str, Any]:
    """Makes the table of a paper on each data set that the flags name."""
    from keras_lstm_dssm.papers import PAPERS, choose_rows
    from keras_lstm_dssm.papers.report import write_overview
    from keras_lstm_dssm.papers.table import make_table, reasons

    paper = PAPERS[name]
    rows = choose_rows(paper.rows, values.systems)
    settings, pairs = _given(values, name)
    output = Path(values.output)
    folders = _folders(output, values.data)
    if values.threads:  # read by TensorFlow, PyTorch and BLAS when they start
        for variable in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
            os.environ[variable] = str(values.threads)
    summaries: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    with lock_folder(output, "making a table"):
        for data, folder in folders.items():
            summaries[folder.name], failed_here = make_table(
                folder,
                paper,
                rows,
                TableSettings(data, **settings),
                values.seeds,
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
        if values.json:
            write_json(values.json, result)
        raise InputError(
            f"{output}: the table lacks what failed ({reasons(failed)}):"
            " remove the cause and run the same command again, which runs only"
            " what is missing"
        )
    return result


def _given(
    values: flags.FlagValues, name: str
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Returns the settings of a paper's tables, and its curve's sizes."""
    settings = dict(PAPER_DEFAULTS[name])
    pairs: tuple[float, ...] = ()
    if "pairs" in values and values.pairs is not None:
        if name not in LEARNING_CURVES:
            raise _unknown("pairs", name)
        pairs = _numbers("pairs", values.pairs, 1)
    for field in fields(TableSettings):
        bounds = field.metadata
        flag, papers = bounds.get("flag", field.name), bounds.get("papers")
        if not papers or flag not in values:
            continue
        value = values[flag].value
        if value is None:
            continue
        if name not in papers:
            raise _unknown(flag, name)
        if isinstance(value, list):
            least, most = bounds["least"], bounds.get("most", float("inf"))
            value = _numbers(flag, value, least, most)
            if not value and field.default:
                raise InputError(f"--{flag}: found nothing, expected a number")
        settings[field.name] = value
    if "misspelled" in settings:  # the table itself has the rate 0
        settings["misspelled"] = tuple(r for r in settings["misspelled"] if r)
    return settings, tuple(map(int, pairs))


def _unknown(flag: str, paper: str) -> InputError:
    return InputError(f"--{flag} is no flag of --paper={paper}: leave it out")


def _numbers(
    flag: str, texts: Sequence[str], least: float, most: float = float("inf")
) -> tuple[float, ...]:
    """Returns the numbers of a list flag."""
    try:
        numbers = tuple(float(text) for text in texts)
        if all(least <= number <= most for number in numbers):
            return numbers
    except ValueError:
        pass
    raise InputError(
        f"--{flag}={','.join(texts)}: expected numbers from"
        f" {least:g} to {most:g}, separated by commas"
    )


def _folders(output: Path, data: Sequence[str]) -> dict[str, Path]:
    """Returns data set -> folder of its table."""
    if len(data) == 1:
        return {data[0]: output}
    folders = {name: output / Path(name).name for name in data}
    if len(set(folders.values())) < len(data):
        raise InputError(
            f"--data={','.join(data)}: found two data sets of one name,"
            " expected different names: rename a folder"
        )
    return folders


program = table_program(__doc__, list(PAPER_DEFAULTS))
FLAGS = program.flags


def main(_: list[str]) -> dict[str, Any]:
    """Makes the tables of the paper that `--paper` names."""
    return make_tables(FLAGS, PAPER_ALIASES.get(FLAGS.paper, FLAGS.paper))


run = program.main(main)

if __name__ == "__main__":
    sys.exit(run())
