"""Trains and measures the systems of the tables of a paper.

This is the work of the program lstm-dssm-table. Its help and its flags are in
`tools/flags/table.py`, which is imported first and without TensorFlow.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import flags

from keras_lstm_dssm.command_line import Main
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import lock_folder, write_json
from keras_lstm_dssm.papers import PAPERS, choose_rows
from keras_lstm_dssm.papers.report import write_overview
from keras_lstm_dssm.papers.results import Summary
from keras_lstm_dssm.papers.table import make_table, reasons
from keras_lstm_dssm.settings.papers import (
    PAPER_ALIASES,
    PAPER_FIXED,
    PAPER_OPTIONS,
    TableSettings,
)
from keras_lstm_dssm.tools.flags.table import COMMAND_LINE, FLAGS
from keras_lstm_dssm.tools.table_flags import given_settings


def table_work(values: flags.FlagValues, name: str = "") -> Main:
    """Returns the work of a program that makes the tables of papers.

    Args:
        values: Its flags, from `table_flags`.
        name: The only paper whose tables it makes; by default the flag
            `--paper` chooses one.
    """

    def main(_: list[str]) -> dict[str, Any]:
        paper = name or values.paper
        return _make_tables(values, PAPER_ALIASES.get(paper, paper))

    return main


def _make_tables(values: flags.FlagValues, name: str) -> dict[str, Any]:
    """Makes the table of each data set that the flags name."""
    paper = PAPERS[name]
    rows = choose_rows(paper.rows, values.systems)
    given = given_settings(values, name)
    pairs = tuple(int(number) for number in given.pop("pairs", ()))
    given["pairs"] = given.pop("clicks", None)
    settings = {**PAPER_OPTIONS[name], **PAPER_FIXED.get(name, {}), **given}
    output = Path(values.output)
    folders = _folders(output, values.data)
    if values.threads:  # read by TensorFlow, PyTorch and BLAS when they start
        for variable in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS"):
            os.environ[variable] = str(values.threads)
    summaries: dict[str, Summary] = {}
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


def _folders(output: Path, data: Sequence[str]) -> dict[str, Path]:
    """Returns data set -> folder of its table.

    Raises:
        InputError: Two data sets have one name.
    """
    if len(data) == 1:
        return {data[0]: output}
    folders = {one: output / Path(one).name for one in data}
    if len(set(folders.values())) < len(data):
        raise InputError(
            f"--data={','.join(data)}: found two data sets of one name,"
            " expected different names: rename a folder"
        )
    return folders


run = COMMAND_LINE.program(table_work(FLAGS))

if __name__ == "__main__":
    sys.exit(run())
