"""Old clicks that are mixed into a training on new ones."""

from pathlib import Path

import numpy as np

from keras_lstm_dssm.data.batches import permutation
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.sources import open_log
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.settings.data import ReplaySpec

_FILE = "epoch_replay.tsv"
_CLICKS = "replay.train.tsv"
_STREAM = 1 << 32  # other draws than those of the order of the batches


class Replay:
    """Draws the old clicks of each epoch, as a function of seed and epoch.

    An epoch has `share` old clicks for each of the `new` ones, at most all of
    them, drawn without repetition; `rows` is their number, `log` has all.
    """

    def __init__(
        self,
        spec: ReplaySpec,
        new: int,
        folder: Path,
        seed: int,
        min_relevant: int = 1,
        max_bad_lines: int = 0,
        fields: str | None = None,
    ) -> None:
        self.log = open_log(
            spec.data, min_relevant, folder / _CLICKS, max_bad_lines, fields
        )
        wanted = max(1, round(spec.share * new))
        self.rows = min(wanted, self.log.count())
        self.seed = seed
        self.path = folder / _FILE
        self._written: int | None = None

    def of_epoch(self, epoch: int) -> ClickLog:
        """Opens the old clicks of an epoch, counted from 0.

        They are drawn and written once, since mining and batches both read
        them.
        """
        if self._written != epoch:
            self._write(epoch)
            self._written = epoch
        return ClickLog(self.path)

    def _write(self, epoch: int) -> None:
        """Reads as many blocks of 8 lines, drawn at random, as clicks."""
        blocks = self.log.blocks()
        order = permutation(len(blocks), self.seed, epoch, _STREAM)
        # A block has a click or more, unless all its lines are bad ones.
        enough = int(
            np.searchsorted(np.cumsum(blocks.clicks[order] > 0), self.rows) + 1
        )
        lines = blocks.read(np.sort(order[:enough]))
        if len(lines) < self.rows:  # there are fewer blocks than clicks wanted
            lines = blocks.read(np.arange(len(blocks)))
        chosen = permutation(len(lines), self.seed, epoch, _STREAM, 1)
        with replacing(self.path) as partial, partial.open("wb") as file:
            for row in chosen[: self.rows].tolist():
                file.write(lines[row] + b"\n")

    def joined(self, log: ClickLog, epoch: int) -> ClickLog:
        """Returns a log together with the old clicks of an epoch."""
        old = self.of_epoch(epoch)
        return ClickLog([*log.paths, *old.paths], log.max_bad_lines)
