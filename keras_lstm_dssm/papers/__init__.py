"""Repeats the tables of three papers: trains and measures their systems.

The modules `table_iv` (Palangi et al. 2016), `mv_lstm` (Wan et al. 2016) and
`keyvec` (Bi and Ma 2017) declare the tables. Each name of this package is
imported from its module when the name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keras_lstm_dssm.papers.baselines import (
        Doc2VecSystem,
        LSASystem,
        RandomVectorSystem,
        TfidfSystem,
        UnigramLMSystem,
        Word2VecSystem,
    )
    from keras_lstm_dssm.papers.plsa import PLSASystem
    from keras_lstm_dssm.papers.run_systems import Row, choose_rows
    from keras_lstm_dssm.papers.skip_thought import SkipThoughtSystem
    from keras_lstm_dssm.papers.table import PAPERS
    from keras_lstm_dssm.settings.programs import TableSettings

_NAMES = {
    "papers.baselines": (
        "Doc2VecSystem LSASystem RandomVectorSystem TfidfSystem UnigramLMSystem"
        " Word2VecSystem"
    ),
    "papers.plsa": "PLSASystem",
    "papers.run_systems": "Row choose_rows",
    "papers.skip_thought": "SkipThoughtSystem",
    "papers.table": "PAPERS",
    "settings.programs": "TableSettings",
}
_MODULES = {
    name: f"keras_lstm_dssm.{module}"
    for module, names in _NAMES.items()
    for name in names.split()
}

__all__ = [
    "Doc2VecSystem", "LSASystem", "PAPERS", "PLSASystem", "RandomVectorSystem",
    "Row", "SkipThoughtSystem", "TableSettings", "TfidfSystem",
    "UnigramLMSystem", "Word2VecSystem", "choose_rows",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
