"""PeepholeLSTM: the LSTM layer of the paper."""

from typing import Any

from keras_lstm_dssm.layers.peephole_lstm_cell import PeepholeLSTMCell
from keras_lstm_dssm.layers.recurrent import Recurrent
from keras_lstm_dssm.registry import register


@register
class PeepholeLSTM(Recurrent):
    """LSTM with peepholes and forget gate on or off, eq. (2).

    Gives the numbers of `keras.layers.RNN(PeepholeLSTMCell(...))`, takes
    the lengths of the rows, and cuts the gradient after `truncate` steps.

    Args:
        units: Number of cells.
        peephole: `None`, `"diagonal"` or `"full"`.
        forget_gate: Whether cells can forget.
        truncate: See `Recurrent`.
        project_inputs: See `GatedCell`.

    Call arguments:
        inputs: `(batch, time, features)`.
        lengths: int `(batch,)` or `None`.

    Example:
    >>> PeepholeLSTM(96)(np.zeros((2, 5, 16), "float32"), [5, 3]).shape
    TensorShape([2, 96])
    """

    def __init__(
        self,
        units: int,
        peephole: str | None = None,
        forget_gate: bool = False,
        truncate: int | None = None,
        project_inputs: bool = True,
        **kwargs: Any,
    ) -> None:
        cell = PeepholeLSTMCell(
            units,
            peephole,
            forget_gate,
            project_inputs,
            dtype=kwargs.get("dtype"),
            name="cell",
        )
        super().__init__(cell, truncate, **kwargs)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        del config["cell"]
        return {
            **config,
            "units": self.cell.units,
            "peephole": self.cell.peephole,
            "forget_gate": self.cell.forget_gate,
            "project_inputs": self.cell.project_inputs,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "PeepholeLSTM":
        """Rebuilds the layer."""
        return cls(**config)
