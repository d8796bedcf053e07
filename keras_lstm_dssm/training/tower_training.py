"""`TowerTraining` trains two towers. `Replay` draws old clicks to train on."""

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.augmentation import title_pairs
from keras_lstm_dssm.data.batches import (
    ClickFrequencies,
    CorpusNegatives,
    GivenNegatives,
    permutation,
    training_batches,
)
from keras_lstm_dssm.data.click_log import ClickLog, write_pairs
from keras_lstm_dssm.data.sources import open_collection, open_log
from keras_lstm_dssm.data.split import check_not_trained
from keras_lstm_dssm.data.statistics import alphabet_warning
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.errors import InputError, check_lists
from keras_lstm_dssm.files import replacing, write_json
from keras_lstm_dssm.models.builders import build_towers, compile_towers
from keras_lstm_dssm.models.two_tower import TwoTower, ZeroLossWarning
from keras_lstm_dssm.optimizers.nesterov_momentum import NesterovSchedule
from keras_lstm_dssm.plain_files import (
    TEXTS_BYTES,
    check_plain_file,
    damage_named,
    read_json,
)
from keras_lstm_dssm.settings.recipes import Recipe
from keras_lstm_dssm.settings.training import ReplaySpec
from keras_lstm_dssm.training.initial_model import InitialModel
from keras_lstm_dssm.training.mining import HardNegatives
from keras_lstm_dssm.training.train import Training, open_clicks
from keras_lstm_dssm.training.word_fit import with_fitted_words

_FILE = "epoch_replay.tsv"
_CLICKS = "replay.train.tsv"
_REPLAY_STREAM = 1 << 32  # a seed that the order of batches never uses


class Replay:
    """Draws old clicks for each epoch; the draw depends on seed and epoch."""

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
        # Number of old clicks in each epoch. No old click repeats in an epoch.
        self.rows = min(max(1, round(spec.share * new)), self.log.count())
        self.seed = seed
        self.path = folder / _FILE
        self._written: int | None = None

    def of_epoch(self, epoch: int) -> ClickLog:
        """Returns the old clicks of an epoch, counted from 0."""
        if self._written != epoch:
            self._write(epoch)
            self._written = epoch
        return ClickLog(self.path)

    def _write(self, epoch: int) -> None:
        """Writes `rows` clicks, drawn from random blocks of lines."""
        blocks = self.log.blocks()
        order = permutation(len(blocks), self.seed, epoch, _REPLAY_STREAM)
        # A block that is not empty has at least one click. So the first `rows`
        # such blocks are enough. If there are fewer, all blocks are read.
        block_count = int(
            np.searchsorted(np.cumsum(blocks.clicks[order] > 0), self.rows) + 1
        )
        lines = blocks.read(np.sort(order[:block_count]))
        order_of_lines = permutation(
            len(lines), self.seed, epoch, _REPLAY_STREAM, 1
        )
        with replacing(self.path) as partial, partial.open("wb") as file:
            for row in order_of_lines[: self.rows].tolist():
                file.write(lines[row] + b"\n")

    def joined(self, log: ClickLog, epoch: int) -> ClickLog:
        """Returns `log` together with the old clicks of an epoch."""
        old = self.of_epoch(epoch)
        return ClickLog([*log.paths, *old.paths], log.max_bad_lines)


_SEEDS_PER_PROCESS = 2**32  # distance between the seeds of processes


def check_same_teacher(
    teacher: TeacherVectors, folder: Path, resumed: bool
) -> None:
    """Writes the teacher's hash into a run, or checks it when resuming."""
    path = folder / "teacher.json"
    if not resumed:
        write_json(path, {"folder": teacher.folder, "sha256": teacher.sha256})
    elif read_json(path).get("sha256") != teacher.sha256:
        raise InputError(
            f"{teacher.folder}: found other vectors than those that the run in"
            f" {folder} was started with: restore the teacher's folder, or"
            " train anew in another --output"
        )


def _read_stored_texts(
    path: Path,
) -> tuple[tuple[str, ...], Mapping[str, Sequence[str]] | None]:
    """Reads the stored arguments `titles` and `judged` of a resumed run."""
    check_plain_file(path)
    if not path.exists():
        return (), None
    content = read_json(path, max_bytes=TEXTS_BYTES)
    with damage_named(path, "expected titles and judged titles: restore it"):
        judged = content["judged"]
        for texts in (content["titles"], *(judged or {}).values()):
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("found no list of texts")
        return tuple(content["titles"]), judged


def _texts_of(name: str, texts: Any) -> list[str]:
    check_lists(**{name: texts})
    result = [*texts]
    if not all(isinstance(text, str) for text in result):
        raise InputError(f"{name} is {texts!r:.60}: expected a list of texts")
    return result


class TowerTraining(Training):
    """The training of two towers."""

    recipe: Recipe
    log: ClickLog

    def open(self) -> None:
        """Opens and checks the clicks."""
        config = self.config
        self.clicks, self._source = self.processes.open_clicks(
            lambda: open_clicks(
                config.data,
                self.run,
                config.min_relevant,
                config.max_bad_lines,
                self.recipe.fields,
            )  # fmt: skip
        )
        self.spec = self._source.spec
        self.log = self.clicks  # `prepare` adds synthetic pairs
        # Number of pairs in a batch of this process, and number of steps in an
        # epoch. If several workers train, `Workers` sets both.
        self.rows = self.recipe.batch_size
        self.joint_steps: int | None = None
        self.titles, self.judged = self._text_arguments()
        if self.recipe.judged_negatives and self.judged is None:
            self.judged = self.processes.on_each(
                lambda: self._source.judged_negatives(config.min_relevant)
            )

    def _text_arguments(
        self,
    ) -> tuple[tuple[str, ...], Mapping[str, Sequence[str]] | None]:
        """Checks and stores `titles` and `judged`; a resumed run reads them."""
        path = self.run.path / "given_texts.json"
        if self.resumed:
            return _read_stored_texts(path)
        titles = tuple(_texts_of("titles", self.config.titles))
        judged = self.config.judged
        if judged is not None:
            if not isinstance(judged, Mapping):
                raise InputError(
                    f"judged is {judged!r:.60}: expected a dict, query ->"
                    " titles"
                )
            judged = {
                query: _texts_of(f"judged[{query!r:.60}]", negatives)
                for query, negatives in judged.items()
            }
        if titles or judged is not None:
            write_json(path, {"titles": titles, "judged": judged})
        return titles, judged

    def new_model(self, initial: InitialModel | None = None) -> TwoTower:
        """Builds, adapts and compiles the model; copies `initial`'s weights."""
        recipe, seed = self.recipe, self.config.seed
        if recipe.has_word_sum:
            model = with_fitted_words(recipe, self.config.teacher, seed)
        else:
            model = build_towers(recipe, seed)
        if initial is not None:
            initial.check(self.recipe)
            initial.copy_weights_to(model)
        if model.needs_adapt:
            model.adapt(self.all_titles)
        compile_towers(model, recipe)
        return model

    def prepare(self, model: TwoTower) -> None:
        """Opens replay, synthetic pairs and negatives for the batches."""
        recipe, config, folder = self.recipe, self.config, self.run.path
        seed = config.seed
        self.split_of_titles = model.document_encoder.trigrams.split
        if config.teacher is not None:
            teacher = TeacherVectors.open(config.teacher)
            check_same_teacher(teacher, folder, self.resumed)
        self.replay: Replay | None = None
        if replay := ReplaySpec.parse(config.replay):
            self.replay = Replay(
                replay, self.clicks.count(), folder, seed,
                config.min_relevant, self.clicks.max_bad_lines, recipe.fields,
            )  # fmt: skip
        if recipe.title_pairs:
            path = folder / "title_pairs.tsv"
            if not (self.resumed and path.exists()):
                pairs = title_pairs(self.all_titles, recipe.title_pairs, seed)
                write_pairs(pairs, path)
            self.log = ClickLog(
                [*self.clicks.paths, path], self.clicks.max_bad_lines
            )
        self.corpus: CorpusNegatives | None = None
        if recipe.negatives == "corpus":
            self.corpus = CorpusNegatives(
                self.log.documents(),
                recipe.n,
                seed + self.processes.rank * _SEEDS_PER_PROCESS,
                self.split_of_titles,
            )
        self.negatives: GivenNegatives | HardNegatives | None = None
        if recipe.judged_negatives and self.judged is not None:
            self.negatives = GivenNegatives(
                self.judged,
                recipe.judged_negatives,
                seed,
                model.query_encoder.trigrams.split,
            )
        elif recipe.hard_negatives:
            self.negatives = HardNegatives(
                folder / "hard_negatives.json.gz",
                self.clicks,
                recipe,
                seed,
                from_start=config.init is not None,
                known=self.replay.log if self.replay else (),
                titles=self.all_titles,
            )

    @cached_property
    def frequencies(self) -> ClickFrequencies | None:
        """Titles' click frequencies, or `None` without the logQ correction."""
        if not self.recipe.logq:
            return None
        return ClickFrequencies.from_log(self.log, split=self.split_of_titles)

    def count(self) -> int:
        """Returns the number of pairs in an epoch."""
        return self.log.count() + (self.replay.rows if self.replay else 0)

    def batches(
        self, first: int, negatives: GivenNegatives | None = None
    ) -> tf.data.Dataset:
        """Returns the batches from training step `first` on."""
        log, epochs = self.log, self.recipe.epochs
        frequencies = self.frequencies
        if self.replay:
            # Each epoch has different old clicks, so the dataset ends with the
            # epoch of step `first`.
            epoch = first // self.steps_per_epoch
            log, epochs = self.replay.joined(log, epoch), epoch + 1
            if frequencies:
                frequencies = ClickFrequencies.from_log(log, frequencies.split)
        batches = training_batches(
            log,
            self.rows,
            epochs=epochs,
            seed=self.config.seed,
            first_step=first,
            shuffle_buffer=self.recipe.shuffle_buffer,
            steps_per_epoch=self.joint_steps,
        )
        if negatives:
            batches = negatives.attach(batches, first)
        if self.corpus:
            batches = self.corpus.attach(batches, first)
        if frequencies:
            batches = frequencies.attach(batches)
        return batches

    def validation_batches(self, pairs: ClickLog) -> tf.data.Dataset:
        """Returns validation batches, with corpus negatives as in training."""
        batches = super().validation_batches(pairs)
        return self.corpus.attach(batches) if self.corpus else batches

    def batches_of_fit(
        self, first: int, model: TwoTower
    ) -> tuple[tf.data.Dataset, int]:
        """Returns batches, and the number of the last epoch that has them."""
        epoch, steps_done = divmod(first, self.steps_per_epoch)
        negatives, last = self.negatives, self.recipe.epochs
        if isinstance(negatives, HardNegatives):
            last = min(last, negatives.next_mining(epoch))
            negatives = self._mine(negatives, epoch, model, not steps_done)
        if self.replay:
            last = epoch + 1
        return self.batches(first, negatives), last

    def _mine(
        self, miner: HardNegatives, epoch: int, model: TwoTower, begins: bool
    ) -> GivenNegatives | None:
        """Returns an epoch's negatives; only the first process mines titles."""
        clicks = miner.clicks
        if self.replay:
            clicks = self.replay.joined(clicks, epoch)
        negatives = self.processes.only_on_first(
            lambda: miner.of_epoch(epoch, model, begins, clicks, self.progress)
        )
        if self.processes.first:
            return negatives
        return miner.of_epoch(epoch, model, False, clicks)  # reads the file

    def needs_checkpoint(self, epochs: int) -> bool:
        """Returns whether negatives are mined right after `epochs` epochs."""
        return (
            isinstance(self.negatives, HardNegatives)
            and self.negatives.next_mining(epochs - 1) == epochs
        )

    @property
    def logs(self) -> tuple[ClickLog, ...]:
        """The click logs that are read during training."""
        return (self.log,)

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """A callback that warns if the loss of the first epoch is 0."""
        return [ZeroLossWarning()]

    def schedules(self, steps: int) -> list[keras.callbacks.Callback]:
        """The callback that sets the recipe's momentum."""
        recipe = self.recipe
        return [
            NesterovSchedule(
                steps,
                recipe.momentum_ends,
                recipe.momentum_middle,
                recipe.momentum_fraction,
            )
        ]

    def describe(self) -> str:
        """Describes the amount of data."""
        text = f"{self.examples:,} pairs"
        if self.replay:
            text += f", {self.replay.rows:,} of them old clicks"
        if self.recipe.title_pairs:
            count = self.log.count() - self.clicks.count()
            text += f", {count:,} of them made of titles"
        if self.processes.size > 1:
            text += f", {self.processes.size} workers"
        return text

    def dev_task(self, spec: str) -> Any:
        """Opens the collection with the dev queries."""
        collection = open_collection(spec, self.recipe.fields)
        if collection.is_prepared:
            check_not_trained(collection, self.queries)
        return collection

    @cached_property
    def queries(self) -> list[str]:
        """The distinct queries of the clicks."""
        return list(dict.fromkeys(pair.query for pair in self.clicks))

    @cached_property
    def all_titles(self) -> list[str]:
        """The distinct titles of the argument `titles` and of the data."""
        titles = self._source.titles(self.clicks)
        return list(dict.fromkeys([*self.titles, *titles]))

    def warn(self, model: TwoTower) -> None:
        """Warns if nothing is mined, or if the encoders miss many letters."""
        recipe, mined = self.recipe, self.negatives
        if isinstance(mined, HardNegatives) and not mined.from_start:
            if recipe.epochs <= recipe.mine_every:
                print(
                    f"warning: hard_negatives={recipe.hard_negatives} mines"
                    f" nothing: mining begins after mine_every="
                    f"{recipe.mine_every} epochs, and epochs={recipe.epochs}:"
                    " lower mine_every, or raise epochs",
                    file=sys.stderr,
                )
        if not recipe.oov_buckets and (line := alphabet_warning(self.clicks)):
            print(f"warning: {line}", file=sys.stderr)
