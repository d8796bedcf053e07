"""Encoding: titles a second, from strings to vectors."""

import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

from keras_lstm_dssm.benchmarks.measure import interleaved, seconds
from keras_lstm_dssm.benchmarks.own_towers import OwnTowers
from keras_lstm_dssm.benchmarks.peers import compared, new_peers
from keras_lstm_dssm.export.saved_model import export_encoder
from keras_lstm_dssm.serving.saved_models import SavedEncoder


def measure_encoding(
    titles: list[str], batch_size: int, rounds: int
) -> dict[str, Any]:
    """Times the encoding of distinct titles by ours and by the peers.

    The exported encoder is a peer too; the PyTorch peer's titles are hashed
    ahead, and that is not timed.

    Args:
        titles: The texts.
        batch_size: Texts encoded at once.
        rounds: Measurements, of which the median counts.

    Returns:
        See `compared`, in titles a second.
    """
    own = OwnTowers()
    towers = {"ours": own, **new_peers()}
    runs: dict[str, Callable[[], Any]] = {}
    for name, one in towers.items():
        if hasattr(one, "prepare"):
            runs[name] = partial(one.encode, one.prepare(titles, batch_size))
        else:
            runs[name] = partial(one.encode, titles, batch_size)
    with tempfile.TemporaryDirectory() as folder:
        export_encoder(own.model.document_encoder, folder)
        exported = SavedEncoder(folder)
        runs["exported"] = partial(exported.encode, titles, batch_size)
        times = interleaved(
            {name: partial(seconds, run) for name, run in runs.items()}, rounds
        )
    rates = {name: len(titles) / taken for name, taken in times.items()}
    return compared(rates, "titles_per_second")
