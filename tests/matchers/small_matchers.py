"""Small sizes of each matcher, with which TensorFlow traces it quickly."""

from typing import Any

SMALL_MATCHERS: dict[str, dict[str, Any]] = {
    "ARCI": {"filters": [3, 3], "hidden": [3], "max_words": 8},
    "ARCII": {"filters": [3], "hidden": [3], "max_words": 8},
    "CNTN": {"filters": [3], "k_top": 2, "dimension": 3, "slices": 2},
    "DeepMatch": {"topics": [4, 2], "committee": 3},
    "MVLSTM": {"units": 2, "hidden": 3, "k": 2, "slices": 2},
    "MultiGranCNN": {
        "blocks": 1, "match_filters": [3], "sizes": [4, 2], "hidden": [3],
    },
    "RAE": {"size": 3, "hidden": [3], "max_words": 8, "epochs": 1},
    "RecurrentCosine": {"units": 2, "bidirectional": True},
}  # fmt: skip
"""Name of the matcher's class -> arguments of its constructor."""
