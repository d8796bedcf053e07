"""Tables of three papers, measured anew, with the baselines in them.

`table_iv` is of Palangi et al. 2016, `mv_lstm` of Wan et al. 2016, `keyvec` of
Bi and Ma 2017; the other modules serve all tables. Nothing is imported before
it is used: flags are read before TensorFlow is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keras_lstm_dssm.papers.baselines import (
        LSASystem,
        RandomVectorSystem,
        TfidfSystem,
        UnigramLMSystem,
    )
    from keras_lstm_dssm.papers.gensim_baselines import (
        Doc2VecSystem,
        Word2VecSystem,
    )
    from keras_lstm_dssm.papers.plsa import PLSASystem
    from keras_lstm_dssm.papers.report import PaperTable
    from keras_lstm_dssm.papers.run_systems import Row, choose_rows
    from keras_lstm_dssm.papers.skip_thought import SkipThoughtSystem
    from keras_lstm_dssm.settings.papers import TableSettings

    PAPERS: dict[str, PaperTable]

_NAMES = {
    "papers.baselines": (
        "LSASystem RandomVectorSystem TfidfSystem UnigramLMSystem"
    ),
    "papers.gensim_baselines": "Doc2VecSystem Word2VecSystem",
    "papers.plsa": "PLSASystem",
    "papers.run_systems": "Row choose_rows",
    "papers.skip_thought": "SkipThoughtSystem",
    "settings.papers": "TableSettings",
}
_MODULES = {
    name: f"keras_lstm_dssm.{module}"
    for module, names in _NAMES.items()
    for name in names.split()
}
_PAPERS = {
    "table_iv": ("table_iv", "TABLE_IV"),
    "mv_lstm": ("mv_lstm", "MV_LSTM_TABLE"),
    "keyvec": ("keyvec", "KEYVEC_TABLE"),
    "few_clicks": ("few_clicks", "FEW_CLICKS"),
}
"""Name of `PAPERS` -> module and constant."""

__all__ = [
    "Doc2VecSystem",
    "LSASystem",
    "PAPERS",
    "PLSASystem",
    "RandomVectorSystem",
    "Row",
    "SkipThoughtSystem",
    "TableSettings",
    "TfidfSystem",
    "UnigramLMSystem",
    "Word2VecSystem",
    "choose_rows",
]


def __getattr__(name: str) -> Any:
    if name == "PAPERS":
        value: Any = {
            paper: getattr(import_module(f"{__name__}.{module}"), constant)
            for paper, (module, constant) in _PAPERS.items()
        }
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
