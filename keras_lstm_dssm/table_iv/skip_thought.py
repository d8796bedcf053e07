"""Skip-Thought for a table: trained once for all data sets, and kept."""

import hashlib
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path

import keras_lstm_dssm
from keras_lstm_dssm.baselines.skip_thought import SkipThoughtSystem
from keras_lstm_dssm.files import cache_folder, read_json, write_json
from keras_lstm_dssm.table_iv.trained import Options

_SECONDS = "seconds.json"


def skip_thought(
    paragraphs: Sequence[Sequence[str]], options: Options, seed: int
) -> tuple[SkipThoughtSystem, float]:
    """Trains Skip-Thought, or reads what was trained on the same before.

    It sees no clicks, so one training serves every data set, and a uni and a
    bi one serve the combined one; they take minutes each.

    Args:
        paragraphs: What it learns from.
        options: Arguments of `SkipThoughtSystem`.
        seed: Of its weights.

    Returns:
        The system, and the seconds that its training took.
    """
    if options["mode"] == "combined":
        (uni, one), (bi, other) = (
            skip_thought(paragraphs, {**options, "mode": mode}, seed)
            for mode in ("uni", "bi")
        )
        return SkipThoughtSystem.combine(uni, bi), one + other
    key = json.dumps(
        [keras_lstm_dssm.__version__, options, seed, paragraphs],
        sort_keys=True,
    )
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    folder = Path(cache_folder(), f"skip_thought-{name}")
    # Written last, so that a folder that has it is whole.
    if (folder / _SECONDS).exists():
        taken = read_json(folder / _SECONDS)["seconds"]
        return SkipThoughtSystem.load(folder), taken
    start = time.perf_counter()
    system = SkipThoughtSystem(seed=seed, **options).fit(paragraphs)
    seconds = time.perf_counter() - start
    os.makedirs(folder, exist_ok=True)
    system.save(folder)
    write_json(folder / _SECONDS, {"seconds": seconds})
    return system, seconds
