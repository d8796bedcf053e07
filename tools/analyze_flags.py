"""The flags of lstm-dssm-analyze, and which models use them."""

from collections.abc import Iterable

from absl import flags

from keras_lstm_dssm.command_line import definers, new_flags
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.choices import MAP_METHODS
from keras_lstm_dssm.settings.reports import ReportSettings
from keras_lstm_dssm.tools.settings_flags import define_bad_line_flags

_DEFAULTS = ReportSettings()

_KEYVEC = "the key sentences of a KeyVec"
_TOWERS = "the vectors of two towers"
_SUBJECTS = {
    "claims": _TOWERS,
    "projector": "the vectors of two towers or of a KeyVec",
    "queries": _TOWERS,
    "query": "a query and a title",
    "document": "a query and a title",
    "salience": _KEYVEC,
    "csv": _KEYVEC,
}


def new_analyze_flags() -> flags.FlagValues:
    """Define the flags, with the defaults of `ReportSettings`."""
    analyze_flags = new_flags()
    define = definers(analyze_flags)
    define.string("run", None, "The folder that lstm-dssm-train wrote.")
    define.string("output", None, "The HTML file to write.")
    define.string(
        "query", "hotels in shanghai", "A query, by default the paper's."
    )
    define.string(
        "document",
        "shanghai hotels accommodation hotel in shanghai discount and "
        "reservation",
        "The title of a document to compare with the query, by default the "
        "paper's.",
    )
    define.string(
        "data", None,
        "Data with titles and queries: `api`, a BEIR folder or click files; "
        "for a KeyVec `api_documents` or a folder of documents. By default the "
        "data that the run was trained on.",
    )  # fmt: skip
    define_bad_line_flags(analyze_flags)
    define.string(
        "queries", None,
        "A file with queries for the topics of the cells, one a line; by "
        "default the queries of the data.",
    )  # fmt: skip
    define.integer(
        "cells", _DEFAULTS.cells,
        "Number of most active cells of a text, for its keywords.", 1,
    )  # fmt: skip
    define.integer(
        "topic_cells", _DEFAULTS.topic_cells,
        "Number of most active cells of a query, for the topics.", 1,
    )  # fmt: skip
    define.float(
        "change", _DEFAULTS.change,
        "A word is assigned to a cell whose output changes at the word by this "
        "share of its final output, or more.", 0,
    )  # fmt: skip
    define.float(
        "share", _DEFAULTS.share,
        "A keyword is assigned to more than this share of the active cells.",
        0, 1,
    )  # fmt: skip
    define.enum(
        "map", _DEFAULTS.map, MAP_METHODS,
        "Method that lays out the map of titles or documents.",
    )  # fmt: skip
    define.integer(
        "map_titles", _DEFAULTS.map_titles,
        "Number of titles or documents on the map.", 3,
    )  # fmt: skip
    define.integer(
        "examples", 3,
        "Pair scorers: number of queries, each with two answers. KeyVec: "
        "number of documents.", 1,
    )  # fmt: skip
    define.string(
        "salience", None,
        "KeyVec: what chooses the key sentences to compare with, `bm25`, "
        "`trigrams`, `lead` or a run folder; by default as in training.",
    )  # fmt: skip
    define.string(
        "csv", None, "KeyVec: a folder to write the figures to, as CSV files."
    )
    define.string(
        "pictures", None, "A folder to keep the pictures in, as PNG files."
    )
    define.bool("claims", False, "Also measure the paper's claims on the data.")
    define.bool(
        "projector", False, "Also write RUN/logs for TensorBoard's projector."
    )
    return analyze_flags


def check_used(
    analyze_flags: flags.FlagValues, names: Iterable[str], model: str
) -> None:
    """Check that no flags are given that a model cannot use.

    Args:
        analyze_flags: The flags of `new_analyze_flags`, parsed.
        names: Names of the flags that the model cannot use.
        model: What the message calls the model.

    Raises:
        InputError: One of them is given.
    """
    for name in names:
        if analyze_flags[name].present and analyze_flags[name].value:
            raise InputError(
                f"--{name} is about {_SUBJECTS[name]}: leave it out for {model}"
            )
