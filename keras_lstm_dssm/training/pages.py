"""Pages of results that a training names: their clicks, written into its run.

A click file of the run takes the place of the pages in its data, so that a run
that is resumed, its workers and all programs read clicks as from any file.
"""

import os
from typing import Any

from keras_lstm_dssm.data.click_log import describe_bad
from keras_lstm_dssm.data.click_pages import (
    ClickPages,
    is_pages,
    read_titles,
    write_clicks,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.data import parts_of
from keras_lstm_dssm.settings.training import TrainingConfig


def with_written_pages(
    config: TrainingConfig, run: RunFolder, verbose: Any = 0
) -> TrainingConfig:
    """Writes the clicks of pages as click files into a run's folder.

    `data` may name several logs, separated by commas. Returns the settings of
    the training with the written files in place of the pages.

    Raises:
        InputError: An option of pages is set, and the data are click files; or
            see `ClickPages`.
    """
    data = config.data
    parts = parts_of(os.fspath(data)) if isinstance(data, str) else []
    numbers = [n for n, part in enumerate(parts) if is_pages(part)]
    for name in ("documents", "actions"):
        if not numbers and getattr(config, name):
            raise InputError(
                f"{name} needs pages of results: expected ubi:FOLDER or"
                " parquet pages as data, or leave it out"
            )
    if not numbers:
        return config
    documents = read_titles(config.documents) if config.documents else None
    limit = config.max_bad_lines
    # All specifications are checked before the first log is read.
    opened = {
        n: ClickPages(parts[n], documents, config.actions, limit)
        for n in numbers
    }
    for n, pages in opened.items():
        path = run.path / f"clicks.pages{n + 1}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_clicks(pages, path)
        parts[n] = str(path.absolute())
        if verbose and pages.base is not None:
            print(f"{pages.spec}: ordinals begin with {pages.base}")
        if verbose and pages.bad_lines:
            print(f"{pages.spec}: left out: {describe_bad(pages.bad_lines)}")
    return config.replace(data=",".join(parts))
