"""The rows of tables: which systems they have, selected by name."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models import KeyVecRecipe, ScorerRecipe
from keras_lstm_dssm.models.kinds import AnyRecipe

_FEED_FORWARD = ("DSSMEncoder", "CLSMEncoder")
_RECURRENT = ("MVLSTM", "RecurrentCosine")


class Row(NamedTuple):
    """One system of a table.

    Attributes:
        label: The name of the system in the table.
        paper: NDCG@1, @3, @10 in Table IV of Palangi et al. 2016, in percent,
            on the paper's data.
        recipe: Describes the training of two towers, of a pair scorer or of
            a `KeyVec`; `None` for a baseline.
        tuned: Whether the learning rate (and gamma, of towers) is chosen on
            dev, and epochs and batch size are the table's, equal for all
            such rows; `False` keeps all of the recipe.
        seeded: Whether another seed gives another result.
        vectors: Whether the system computes vectors that can be clustered.
        salience: Of a `KeyVec`: the teacher of its key sentences; `None` for
            that of the settings.
        trained: Of a `KeyVec`: whether it is trained; `False` measures its
            initial weights.
        taught: Of two towers: whether they learn from the teacher of the
            settings, too.
        saved: Of two towers: whether the model is saved beside the results,
            for rows of mixtures.
        parts: Of a mixture: the rows of the same table that it consists of,
            `"teacher"`, `"bm25"` or saved ones; none for other rows.

    Example:
    >>> Row("BM25", seeded=False).kind
    'baseline'
    """

    label: str
    paper: tuple[float, float, float] | None = None
    recipe: AnyRecipe | None = None
    tuned: bool = True
    seeded: bool = True
    vectors: bool = True
    salience: str | None = None
    trained: bool = True
    taught: bool = False
    saved: bool = False
    parts: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The group of the row in the charts."""
        if self.recipe is None:
            return "baseline"
        if isinstance(self.recipe, KeyVecRecipe):
            return "recurrent"
        if isinstance(self.recipe, ScorerRecipe):
            recurrent = self.recipe.matcher in _RECURRENT
        else:
            recurrent = self.recipe.encoder not in _FEED_FORWARD
        return "recurrent" if recurrent else "feed-forward"


def choose_rows(
    rows: Mapping[str, Row], names: Sequence[str]
) -> dict[str, Row]:
    """Returns the named rows, or all, in the table's order.

    Args:
        rows: Name -> row, the whole table.
        names: Names of rows; `["all"]` for the whole table.

    Raises:
        InputError: A name is not in the table, or `names` is empty.

    >>> list(choose_rows(TABLE_IV_ROWS, ["dssm", "bm25"]))
    ['bm25', 'dssm']
    """
    if list(names) == ["all"]:
        return dict(rows)
    unknown = [name for name in names if name not in rows]
    if unknown or not names:
        raise InputError(
            f"--systems={','.join(names)}: found"
            f" {unknown[0] if unknown else 'no name'!r}, expected all, or some"
            f" of {', '.join(rows)}"
        )
    return {name: row for name, row in rows.items() if name in names}
