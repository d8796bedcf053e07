"""RedrawnTitles: synthetic pairs that change from epoch to epoch."""

from pathlib import Path

from keras_lstm_dssm.data import ClickLog, redrawn_pairs, write_pairs

_SEEDS_PER_RUN = 2**32  # more than there are epochs


class RedrawnTitles:
    """Makes the pairs of each epoch: clicks, and redrawn synthetic pairs.

    A function of the epoch and the seed, so that a resumed run reads the
    pairs of an uninterrupted one. An epoch has as many pairs as any other.

    Args:
        clicks: The click log, without synthetic pairs.
        synthetic: The synthetic pairs, see `title_pairs`.
        path: The file for the pairs of one epoch, which is replaced.
        seed: Seed of the pairs.

    Example:
    >>> titles = RedrawnTitles(clicks, pairs, Path("epoch_pairs.tsv"), seed=1)
    >>> titles.of_epoch(3).count() == clicks.count() + pairs.count()
    True
    """

    def __init__(
        self, clicks: ClickLog, synthetic: ClickLog, path: Path, seed: int
    ) -> None:
        self.clicks = clicks
        self.synthetic = synthetic
        self.path = path
        self.seed = seed

    def of_epoch(self, epoch: int) -> ClickLog:
        """Writes the pairs of an epoch, counted from 0, and opens them."""
        seed = self.seed * _SEEDS_PER_RUN + epoch
        write_pairs(redrawn_pairs(self.synthetic, seed), self.path)
        return ClickLog(
            [*self.clicks.paths, self.path], self.clicks.max_bad_lines
        )
