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
        document_baselines,
    )
    from keras_lstm_dssm.papers.gensim_baselines import (
        Doc2VecSystem,
        Word2VecSystem,
    )
    from keras_lstm_dssm.papers.keyvec import KEYVEC_ROWS, write_keyvec_report
    from keras_lstm_dssm.papers.mv_lstm import (
        MV_LSTM_ROWS,
        write_mv_lstm_report,
    )
    from keras_lstm_dssm.papers.plsa import PLSASystem
    from keras_lstm_dssm.papers.report import write_overview
    from keras_lstm_dssm.papers.results import (
        Summary,
        SystemResults,
        read_results,
    )
    from keras_lstm_dssm.papers.rows import Row, choose_rows
    from keras_lstm_dssm.papers.run_systems import run_system, run_systems
    from keras_lstm_dssm.papers.skip_thought import SkipThoughtSystem
    from keras_lstm_dssm.papers.table import (
        FinishedSystems,
        PaperTable,
        check_pairs,
        make_table,
        reasons,
        run_learning_curve,
    )
    from keras_lstm_dssm.papers.table_data import (
        TableData,
        open_data,
        open_table_data,
    )
    from keras_lstm_dssm.papers.table_iv import (
        TABLE_IV_ROWS,
        train_with_one_gamma,
        write_report,
    )
    from keras_lstm_dssm.settings.papers import PAPER_ALIASES, TableSettings

    PAPERS: dict[str, PaperTable]

_MODULES = {
    "Doc2VecSystem": "keras_lstm_dssm.papers.gensim_baselines",
    "FinishedSystems": "keras_lstm_dssm.papers.table",
    "KEYVEC_ROWS": "keras_lstm_dssm.papers.keyvec",
    "LSASystem": "keras_lstm_dssm.papers.baselines",
    "MV_LSTM_ROWS": "keras_lstm_dssm.papers.mv_lstm",
    "PAPER_ALIASES": "keras_lstm_dssm.settings.papers",
    "PLSASystem": "keras_lstm_dssm.papers.plsa",
    "PaperTable": "keras_lstm_dssm.papers.table",
    "RandomVectorSystem": "keras_lstm_dssm.papers.baselines",
    "Row": "keras_lstm_dssm.papers.rows",
    "SkipThoughtSystem": "keras_lstm_dssm.papers.skip_thought",
    "Summary": "keras_lstm_dssm.papers.results",
    "SystemResults": "keras_lstm_dssm.papers.results",
    "TABLE_IV_ROWS": "keras_lstm_dssm.papers.table_iv",
    "TableData": "keras_lstm_dssm.papers.table_data",
    "TableSettings": "keras_lstm_dssm.settings.papers",
    "TfidfSystem": "keras_lstm_dssm.papers.baselines",
    "UnigramLMSystem": "keras_lstm_dssm.papers.baselines",
    "Word2VecSystem": "keras_lstm_dssm.papers.gensim_baselines",
    "check_pairs": "keras_lstm_dssm.papers.table",
    "choose_rows": "keras_lstm_dssm.papers.rows",
    "document_baselines": "keras_lstm_dssm.papers.baselines",
    "make_table": "keras_lstm_dssm.papers.table",
    "open_data": "keras_lstm_dssm.papers.table_data",
    "open_table_data": "keras_lstm_dssm.papers.table_data",
    "read_results": "keras_lstm_dssm.papers.results",
    "reasons": "keras_lstm_dssm.papers.table",
    "run_learning_curve": "keras_lstm_dssm.papers.table",
    "run_system": "keras_lstm_dssm.papers.run_systems",
    "run_systems": "keras_lstm_dssm.papers.run_systems",
    "train_with_one_gamma": "keras_lstm_dssm.papers.table_iv",
    "write_keyvec_report": "keras_lstm_dssm.papers.keyvec",
    "write_mv_lstm_report": "keras_lstm_dssm.papers.mv_lstm",
    "write_overview": "keras_lstm_dssm.papers.report",
    "write_report": "keras_lstm_dssm.papers.table_iv",
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
    "FinishedSystems",
    "KEYVEC_ROWS",
    "LSASystem",
    "MV_LSTM_ROWS",
    "PAPERS",
    "PAPER_ALIASES",
    "PLSASystem",
    "PaperTable",
    "RandomVectorSystem",
    "Row",
    "SkipThoughtSystem",
    "Summary",
    "SystemResults",
    "TABLE_IV_ROWS",
    "TableData",
    "TableSettings",
    "TfidfSystem",
    "UnigramLMSystem",
    "Word2VecSystem",
    "check_pairs",
    "choose_rows",
    "document_baselines",
    "make_table",
    "open_data",
    "open_table_data",
    "read_results",
    "reasons",
    "run_learning_curve",
    "run_system",
    "run_systems",
    "train_with_one_gamma",
    "write_keyvec_report",
    "write_mv_lstm_report",
    "write_overview",
    "write_report",
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
