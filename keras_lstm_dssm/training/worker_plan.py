"""WorkerPlan: what one of several workers reads in a training."""

from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.data import (
    ClickFrequencies,
    ClickLog,
    GivenNegatives,
    training_batches,
)
from keras_lstm_dssm.data.dealt_log import DealtLog
from keras_lstm_dssm.training.hard_negatives import HardNegatives
from keras_lstm_dssm.training.training_plan import TrainingPlan
from keras_lstm_dssm.workers import Cluster, Collectives
from keras_lstm_dssm.workers.agreement import JointError, on_all, on_first


@dataclass(frozen=True)
class WorkerPlan(TrainingPlan):
    """Describes what a worker reads, its part of what all of them read.

    An epoch has as many steps for all workers: those of the smallest part. A
    worker with a larger part leaves out other pairs in each epoch.

    Attributes:
        rows: Pairs of this worker in a batch.
        steps: Training steps in an epoch.
        all_pairs: Pairs in an epoch, of all workers.
        all_bad_lines: What is wrong, and number of lines, of all workers.
        cluster: The workers.
        callbacks: What the workers do together after steps and epochs.
    """

    rows: int = 0
    steps: int = 0
    all_pairs: int = 0
    all_bad_lines: tuple[tuple[str, int], ...] = ()
    cluster: Cluster = Cluster((), 0)
    callbacks: tuple[keras.callbacks.Callback, ...] = ()

    @property
    def examples(self) -> int:
        """Pairs in an epoch, of all workers."""
        return self.all_pairs

    @property
    def bad_lines(self) -> dict[str, int]:
        """What is wrong -> number of lines that all workers leave out."""
        return dict(self.all_bad_lines)

    @property
    def watches(self) -> list[keras.callbacks.Callback]:
        """What the workers do together, before other callbacks."""
        return [*self.callbacks, *super().watches]

    @property
    def steps_per_epoch(self) -> int:
        """Training steps in an epoch."""
        return self.steps

    def describe(self) -> str:
        """Describes the amount of data."""
        return f"{self.all_pairs:,} pairs, {self.cluster.size} workers"

    def batches(
        self, first: int, negatives: GivenNegatives | None = None
    ) -> tf.data.Dataset:
        """Returns this worker's batches from training step `first` on."""
        batches = training_batches(
            self.log,
            self.rows,
            epochs=self.recipe.epochs,
            seed=self.seed,
            first_step=first,
            shuffle_buffer=self.recipe.shuffle_buffer,
            steps_per_epoch=self.steps,
        )
        if negatives:
            batches = negatives.attach(batches, first)
        if self.frequencies:
            batches = self.frequencies.attach(batches)
        return batches


class JointNegatives(HardNegatives):
    """Lets worker 0 mine the negatives, which all workers then read.

    Mining needs the queries and the titles of the whole log.
    """

    collectives: Collectives

    @classmethod
    def of(
        cls, negatives: HardNegatives, collectives: Collectives
    ) -> "JointNegatives":
        """Makes them of those of one process."""
        joint = cls.__new__(cls)
        joint.__dict__.update(negatives.__dict__, collectives=collectives)
        return joint

    def of_epoch(
        self,
        epoch: int,
        model: Any,
        begins: bool,
        clicks: ClickLog | None = None,
    ) -> GivenNegatives | None:
        """Returns the negatives of an epoch, see `HardNegatives`."""
        mined: list[GivenNegatives | None] = []

        def mine() -> None:
            of_epoch = super(JointNegatives, self).of_epoch
            mined.append(of_epoch(epoch, model, begins, clicks))

        on_first(self.collectives, mine)
        if mined:
            return mined[0]
        return super().of_epoch(epoch, model, False, clicks)


def share_of(
    plan: TrainingPlan, collectives: Collectives, split: str
) -> WorkerPlan:
    """Makes a worker's plan of the plan of all.

    Args:
        plan: The whole log, of which nothing has been read, and its negatives.
            Its last file is cut by lines if the recipe has synthetic pairs.
        collectives: The workers.
        split: How the encoder of titles separates words.

    Raises:
        JointError: The log of any worker is wrong.
    """
    cluster, recipe = collectives.cluster, plan.recipe
    if recipe.batch_size < cluster.size:
        raise JointError(
            f"batch_size is {recipe.batch_size}: expected {cluster.size} or "
            "more, a pair for each worker"
        )
    paths = list(plan.log.paths)
    cut = paths[-1:] if recipe.title_pairs else []
    rows = cluster.share(recipe.batch_size)

    def read() -> dict[str, Any]:
        log = DealtLog(
            paths[: len(paths) - len(cut)],
            cluster.rank,
            cluster.size,
            plan.log.max_bad_lines,
            cut,
        )
        logs.append(log)
        return {"pairs": log.count(), "bad": log.bad_lines()}

    logs: list[ClickLog] = []
    parts = on_all(collectives, read)
    steps = min(
        -(-part["pairs"] // cluster.share(recipe.batch_size, rank))
        for rank, part in enumerate(parts)
    )
    bad: dict[str, int] = {}
    for part in parts:
        for problem, count in part["bad"].items():
            bad[problem] = bad.get(problem, 0) + count
    if sum(bad.values()) > plan.log.max_bad_lines:
        raise JointError(
            f"{paths[0]}: found {sum(bad.values())} bad lines in the parts of "
            f"all workers, more than --max_bad_lines={plan.log.max_bad_lines}:"
            " correct or remove them"
        )
    negatives = plan.negatives
    if isinstance(negatives, HardNegatives):
        negatives = JointNegatives.of(negatives, collectives)
    frequencies = None
    if recipe.logq:
        frequencies = ClickFrequencies.from_log(logs[0], split)
        frequencies.count(collectives.sum_counts(frequencies.counts))
    return WorkerPlan(
        logs[0],
        recipe,
        plan.seed,
        negatives,
        frequencies,
        rows=rows,
        steps=steps,
        all_pairs=sum(
            min(part["pairs"], steps * cluster.share(recipe.batch_size, rank))
            for rank, part in enumerate(parts)
        ),
        all_bad_lines=tuple(bad.items()),
        cluster=cluster,
    )
