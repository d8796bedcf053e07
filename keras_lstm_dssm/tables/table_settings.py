"""Settings: what a table was made with, so that it is never mixed."""

import dataclasses
from pathlib import Path
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import read_json, write_json


@dataclasses.dataclass(frozen=True)
class Settings:
    """All that results depend on, but system and seed.

    Attributes:
        data: "api" or a BEIR folder.
        epochs: Passes over the clicks, of neural systems.
        batch_size: Clicks in an update.
        min_relevant: Grade from which a title counts as found in the corpus
            (and as clicked where there is no click file).
        depth: Titles found for each query in the corpus.
        learning_rates: Steps tried on dev.
        gammas: Scales of the cosines tried on dev; the first with every step.
        search: Share of the epochs that a trial on dev takes.
        looks: How often a training is measured on dev.
        misspelled: Rates at which words of test queries are misspelled.
        paragraphs: File of the text that Skip-Thought learns from; None for
            the doc strings of this machine.
        pairs: Clicks to learn from, about, whole queries; None for all.
        judged_negatives: Negatives a click, of those judged below
            `min_relevant` for its query, beside the n that are drawn.
    """

    data: str
    epochs: int = 30
    batch_size: int = 256
    min_relevant: int = 1
    depth: int = 1000
    learning_rates: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1)
    gammas: tuple[float, ...] = (5.0, 3.0, 10.0)
    search: float = 0.15
    looks: int = 5
    misspelled: tuple[float, ...] = ()
    paragraphs: str | None = None
    pairs: int | None = None
    judged_negatives: int = 0

    def record(self, folder: Path, sizes: dict[str, int]) -> None:
        """Writes the settings, or compares them with those in the folder.

        Args:
            folder: Where the results go; made when missing.
            sizes: What the data holds, which must not change either.

        Raises:
            InputError: The folder was begun with other settings or data.
        """
        path = folder / "settings.json"
        ours: dict[str, Any] = {**dataclasses.asdict(self), **sizes}
        ours = {k: list(v) if isinstance(v, tuple) else v
                for k, v in ours.items()}  # fmt: skip
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_json(path, ours)
            return
        for name, found in read_json(path).items():
            if ours.get(name) != found:
                raise InputError(
                    f"{path}: was begun with {name} {found}, now it is"
                    f" {ours.get(name)}; give the same again, or another"
                    " --output"
                )
