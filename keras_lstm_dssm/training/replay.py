"""Old clicks that are mixed into a training on new ones."""

import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.data.batches import permutation
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.sources import absolute_spec, open_log
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing

_FILE = "epoch_replay.tsv"
_CLICKS = "replay.train.tsv"
_EXPECTED = "expected old clicks, a colon and a share, such as old.tsv:0.2"
_STREAM = 1 << 32  # other draws than those of the order of the batches


class ReplaySpec(NamedTuple):
    """Which old clicks are mixed in, and how many."""

    data: str  # see `data.open_log`
    share: float  # old clicks for each new one

    @classmethod
    def parse(cls, replay: Any) -> "ReplaySpec | None":
        """Reads `"old.tsv:0.2"`, a pair of clicks and share, or `None`."""
        if replay is None:
            return None
        parts = (
            replay.rpartition(":")[::2] if isinstance(replay, str) else replay
        )
        try:
            data, share = parts
            if isinstance(data, ClickLog):
                data = ",".join(data.paths)
            spec = cls(absolute_spec(os.fspath(data)), float(share))
        except (TypeError, ValueError):
            spec = cls("", 0.0)
        if not spec.data or not 0 < spec.share < math.inf:
            raise InputError(f"replay is {replay!r:.80}: {_EXPECTED}")
        return spec

    def __str__(self) -> str:
        return f"{self.data}:{self.share!r}"


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
    ) -> None:
        self.log = open_log(
            spec.data, min_relevant, folder / _CLICKS, max_bad_lines
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
