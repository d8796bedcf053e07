"""Which peers take part, and the ratios to them."""

import sys
from collections.abc import Mapping
from typing import Any

from keras_lstm_dssm.benchmarks.keras_towers import (
    KerasTowers,
    PaddedTower,
    SegmentTower,
)

KERAS_FORMS = ("keras_segments", "keras_padded")
"""The two ways to sum an `Embedding` by word; `keras` is the faster one."""


def new_peers() -> dict[str, Any]:
    """Makes the peers by name; without PyTorch, says so and goes on."""
    forms = (SegmentTower, PaddedTower)
    peers: dict[str, Any] = {
        name: KerasTowers(form)
        for name, form in zip(KERAS_FORMS, forms, strict=True)
    }
    try:
        from keras_lstm_dssm.benchmarks.torch_towers import TorchTowers
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        print(
            "no PyTorch peer: pip install torch==2.13.0, into this Python",
            file=sys.stderr,
        )
        return peers
    return {"torch": TorchTowers(), **peers}


def compared(rates: Mapping[str, float], unit: str) -> dict[str, Any]:
    """Sets the rates side by side, and ours in relation to each.

    Args:
        rates: Per second, by name; `ours` among them.
        unit: Name of the rate in the result, `pairs_per_second`, say.

    Returns:
        `{name: {unit: rate}}`, with `keras` for the faster of the two forms,
        and `ratio_<name>` for each peer, above 1 where ours is faster. But
        `ratio_exported` is the exported encoder's rate relative to ours.

    Example:
    >>> compared({"ours": 6.0, "torch": 2.0}, "pairs_per_second")
    {'ours': {'pairs_per_second': 6.0}, 'torch': {'pairs_per_second': 2.0}, \
'ratio_torch': 3.0}
    """
    rates = dict(rates)
    forms = [rates[name] for name in KERAS_FORMS if name in rates]
    if forms:
        rates["keras"] = max(forms)
    result: dict[str, Any] = {
        name: {unit: rate} for name, rate in rates.items()
    }
    for name, rate in rates.items():
        if name == "exported":
            result["ratio_exported"] = rate / rates["ours"]
        elif name != "ours":
            result[f"ratio_{name}"] = rates["ours"] / rate
    return result
