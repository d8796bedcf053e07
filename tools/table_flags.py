"""The flags of the table programs: settings with each paper's default."""

from collections.abc import Sequence
from typing import Any

from absl import flags

from keras_lstm_dssm.command_line import definers, new_flags
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.choices import LIST_MEASURES
from keras_lstm_dssm.settings.papers import (
    LEARNING_CURVES,
    PAPER_ALIASES,
    PAPER_OPTIONS,
)

_SETTINGS: tuple[tuple[Any, ...], ...] = (
    (
        "integer", "epochs",
        "Passes over the training data; the best epoch on dev is measured on"
        " test. `best` has the epochs of its own recipe.", 1,
    ),
    (
        "integer", "batch_size",
        "Clicks or triples in a training batch. `best` has the batch size of"
        " its own recipe.", 2,
    ),
    (
        "integer", "min_relevant",
        "Grade from which a document is relevant in retrieval and in judged"
        " lists, and clicked where the data has no click log.", 1,
    ),
    ("integer", "depth", "Number of documents retrieved for each query.", 100),
    ("list", "learning_rates", "Learning rates to choose from on dev."),
    (
        "list", "gammas",
        "Scales of the cosines to choose from on dev; every learning rate is"
        " tried with the first one.",
    ),
    (
        "float", "search", "Share of --epochs that each trial on dev lasts.",
        0, 1,
    ),
    (
        "integer", "dev_evaluations",
        "Number of evaluations on dev during a training.", 1,
    ),
    (
        "enum", "select",
        "The measure of choices on dev; without it, p@1 where each dev query"
        " has one relevant document, and otherwise map.", LIST_MEASURES,
    ),
    (
        "list", "misspelled",
        "Also measure with these shares of the query words misspelled:"
        " 0.1,0.2.",
    ),
    (
        "integer", "judged_negatives",
        "Number of further negatives for each click, from the documents"
        " judged below --min_relevant for its query.", 0,
    ),
    (
        "string", "salience",
        "What chooses the key sentences that KeyVec learns: bm25, trigrams,"
        " lead (the first sentences), or the run folder of two towers.",
    ),
    (
        "string", "teacher",
        "Folder that lstm-dssm-teach has written for these data, with the"
        " vectors of the encoder that towers learn from.",
    ),
    (
        "string", "paragraphs",
        "Text file for Skip-Thought, a sentence on each line, blank lines"
        " between paragraphs; without it, docstrings of installed packages.",
    ),
)  # fmt: skip
"""Definitions of flags, one tuple each: the kind of the flag (a name of
`definers`), its name, its help, and its smallest value or allowed values."""

_BOUNDS = {
    "learning_rates": (1e-9, float("inf")),
    "gammas": (1e-9, float("inf")),
    "misspelled": (0, 1),
    "pairs": (1, float("inf")),
}
"""List flag -> its smallest and its largest number."""


def table_flags(papers: Sequence[str]) -> flags.FlagValues:
    """Makes the flags of a program that makes the tables of some papers.

    Args:
        papers: Names of `PAPER_OPTIONS`. With several of them, the flag
            `--paper` chooses one.
    """
    values = new_flags()
    define = definers(values)
    if len(papers) > 1:
        names = [*papers, *(a for a, p in PAPER_ALIASES.items() if p in papers)]
        define.enum("paper", None, names, "Whose tables to make.")
    define.list(
        "data", None,
        "`api`, `api_sentences`, a BEIR folder, or several of them; for"
        " keyvec `api_documents` or folders of documents.",
    )  # fmt: skip
    define.string("output", None, "Folder of the table.")
    define.list("systems", ["all"], "Systems, such as bm25,lstm_96, or `all`.")
    define.integer("seeds", 3, "Number of trainings of each system.", 1)
    for kind, name, text, *bounds in _SETTINGS:
        defaults = {
            paper: PAPER_OPTIONS[paper][name]
            for paper in papers
            if name in PAPER_OPTIONS[paper]
        }
        if not defaults:
            continue
        # The default depends on the paper: `None` stands for it.
        arguments: list[Any] = [name, None, text + _shown(defaults), *bounds]
        if kind == "enum":
            arguments[2:] = [list(bounds[0]), text]
        getattr(define, kind)(*arguments)
    if set(papers) & set(LEARNING_CURVES):
        define.list(
            "pairs", None,
            "Also train on about this many clicks, for a learning curve:"
            " 1000,10000.",
        )  # fmt: skip
        define.integer(
            "clicks", None,
            "Train on about this many clicks only, those of some queries. By"
            " default all.", 1,
        )  # fmt: skip
    define.integer(
        "threads", None, "Number of processor cores to use; by default all.", 1
    )
    return values


def _shown(defaults: dict[str, Any]) -> str:
    """Formats the defaults of a setting, by paper, for the help."""
    texts = {}
    for paper, value in defaults.items():
        numbers = value if isinstance(value, tuple) else (value,)
        if numbers and value is not None:
            texts[paper] = ",".join(
                one if isinstance(one, str) else f"{one:g}" for one in numbers
            )
    if not texts:
        return ""
    if len(set(texts.values())) == 1:
        return f" By default {next(iter(texts.values()))}."
    shown = ", ".join(f"{text} ({paper})" for paper, text in texts.items())
    return f" By default {shown}."


def given_settings(values: flags.FlagValues, name: str) -> dict[str, Any]:
    """Returns the settings that flags give, `pairs` and `clicks`, checked.

    Args:
        values: From `table_flags`, parsed.
        name: The paper, one of `PAPER_OPTIONS`.

    Raises:
        InputError: A flag is not one of this paper, or a number is wrong.
    """
    of_clicks = ("pairs", "clicks")
    known = {
        *PAPER_OPTIONS[name],
        *(of_clicks if name in LEARNING_CURVES else ()),
    }
    given: dict[str, Any] = {}
    for option in (*of_clicks, *(setting[1] for setting in _SETTINGS)):
        if option not in values or (value := values[option].value) is None:
            continue
        if option not in known:
            raise InputError(
                f"--{option} is no flag of --paper={name}: leave it out"
            )
        given[option] = _numbers(option, value) if option in _BOUNDS else value
        if option in ("learning_rates", "gammas") and not given[option]:
            raise InputError(f"--{option}: found nothing, expected a number")
    if "misspelled" in given:  # the table itself has the rate 0
        given["misspelled"] = tuple(r for r in given["misspelled"] if r)
    return given


def _numbers(option: str, texts: Sequence[str]) -> tuple[float, ...]:
    """Returns the numbers of a list flag.

    Raises:
        InputError: One is not a number, or out of bounds.
    """
    least, most = _BOUNDS[option]
    try:
        numbers = tuple(float(text) for text in texts)
        if all(least <= number <= most for number in numbers):
            return numbers
    except ValueError:
        pass
    raise InputError(
        f"--{option}={','.join(texts)}: expected numbers from"
        f" {least:g} to {most:g}, separated by commas"
    )
