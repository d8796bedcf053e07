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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from absl import flags

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.folder_lock import lock_folder
from keras_lstm_dssm.tables import (
    PAPER_ALIASES,
    PAPERS,
    Summary,
    TableSettings,
    choose_rows,
    make_table,
    reasons,
    write_overview,
)
from keras_lstm_dssm.tools.program import program
from keras_lstm_dssm.tools.table_flags import given_settings, table_flags


def table_program(
    doc: str, papers: Sequence[str]
) -> tuple[flags.FlagValues, Callable[..., int]]:
    """Makes a program that makes the tables of some papers.

    Args:
        doc: Its help.
        papers: Names of `PAPERS`. With several of them, the flag `--paper`
            chooses one.

    Returns:
        Its flags, and `run` of `program`.
    """
    values = table_flags(papers)

    def main(_: list[str]) -> dict[str, Any]:
        name = values.paper if len(papers) > 1 else papers[0]
        return _make_tables(values, PAPER_ALIASES.get(name, name))

    required = [*(["paper"] if len(papers) > 1 else []), "data", "output"]
    return values, program(main, values, doc, required)


def _make_tables(values: flags.FlagValues, name: str) -> dict[str, Any]:
    """Makes the table of each data set that the flags name."""
    paper = PAPERS[name]
    rows = choose_rows(paper.rows, values.systems)
    given = given_settings(values, name)
    pairs = tuple(int(number) for number in given.pop("pairs", ()))
    given["pairs"] = given.pop("clicks", None)
    settings = {**paper.options, **paper.fixed, **given}
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


FLAGS, run = table_program(__doc__, list(PAPERS))

if __name__ == "__main__":
    sys.exit(run())
