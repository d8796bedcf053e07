"""The flags for the data and the recipe of a training."""

from typing import Any

from absl import flags

from keras_lstm_dssm.command_line import definers
from keras_lstm_dssm.settings.choices import (
    CLUSTER_MEASURES,
    MEASURES,
    NEGATIVES,
    TOWERS,
    WORDS,
)
from keras_lstm_dssm.settings.presets import (
    KEYVEC_PRESETS,
    RANKER,
    SCORER_PRESETS,
    TOWER_PRESETS,
)
from keras_lstm_dssm.tools.keyvec_flags import KEYVEC_FLAGS, define_keyvec_flags
from keras_lstm_dssm.tools.ranker_flags import define_ranker_flags

_LEAST = 1e-9  # absl's bounds are inclusive, and 0 trains nothing
_MOST = 1e30  # absl's bounds let NaN pass; float32 overflows at 3e38

EXPECTED_FINITE = f"expected a finite number, {_MOST} at most"

DATA_FLAGS = (
    "data", "validation", "dev", "select", "every", "patience",
    "min_relevant", "max_bad_lines", "seed", "negatives_from", "salience",
    "teacher", "init", "replay",
)  # fmt: skip
"""Flags that the `config.json` of a run holds, in addition to the recipe's."""

TEACHER_FLAGS = ("teacher_weight", "teacher_temperature", "teacher_gamma")
"""Flags of the recipe that only a training with `--teacher` uses."""

RECIPE_FLAGS = (
    "epochs", "batch_size", "shuffle_buffer", "learning_rate", "threshold",
    "gamma", "negatives", "n", "towers", "title_pairs", "hard_negatives",
    "mine_every", "mine_top", "mine_clusters", "judged_negatives", "logq",
    "words", "mined_negatives", "margin", *TEACHER_FLAGS, *KEYVEC_FLAGS,
)  # fmt: skip
"""Flags that set the attribute of that name in the preset's recipe."""


def is_finite(value: float | None) -> bool:
    """Returns whether a number is neither NaN nor too large for float32."""
    return value is None or value <= _MOST


def define_bad_line_flags(values: flags.FlagValues) -> None:
    """Defines `--on_bad_line` and `--max_bad_lines`."""
    define = definers(values)
    define.enum(
        "on_bad_line", "stop", ["stop", "skip"],
        "What to do with a line of the data that is not a click, or not a "
        "document: stop and report its number, or skip and count it.",
    )  # fmt: skip
    define.integer(
        "max_bad_lines", 100,
        "With --on_bad_line=skip: largest number of bad lines; more stop the "
        "program.", 0,
    )  # fmt: skip


def allowed_bad_lines(values: flags.FlagValues) -> int:
    """Returns how many bad lines of the data the parsed flags allow."""
    return values.max_bad_lines if values.on_bad_line == "skip" else 0


def data_options(values: flags.FlagValues) -> dict[str, Any]:
    """Returns the values of `DATA_FLAGS` but `--data`, by name.

    These are names of arguments of `dssm.train`.
    """
    options = {name: values[name].value for name in DATA_FLAGS}
    del options["data"]
    return options | {"max_bad_lines": allowed_bad_lines(values)}


def define_train_flags(values: flags.FlagValues) -> None:
    """Defines the flags for data, evaluation and recipe."""
    text, whole, real, switch, choice, _ = definers(values)
    text(
        "data", None,
        "`api`, `api_sentences`, a BEIR folder, or click files (.tsv, .tsv.gz, "
        "globs); or several of these, separated by commas. KeyVec: "
        "`api_documents` or a folder of documents.",
    )  # fmt: skip
    text("validation", None, "Click files for the loss after each epoch.")
    text(
        "dev", None,
        "`api` or a BEIR folder: search its dev queries in its whole corpus "
        "after epochs; the best epoch becomes the model. Pair scorers, also "
        "of `api_sentences`: rerank the judged lists of dev. KeyVec: "
        "`api_documents` or a folder of documents; without --dev, the loss on "
        "the documents of the split dev is measured.",
    )  # fmt: skip
    choice(
        "select", "mrr@10", [*MEASURES, *CLUSTER_MEASURES],
        "With --dev: the measure that decides which epoch is best; those of "
        "clusters, from `f1` on, are for a KeyVec. Ranker: by default ndcg@3.",
    )  # fmt: skip
    whole("every", 1, "With --dev: evaluate every n epochs.", 1)
    whole(
        "patience", None,
        "With --dev: stop after this many evaluations without a better "
        "value; by default as the preset says: 3 for `best`, and all epochs "
        "for others. KeyVec without --dev: stop "
        "after this many epochs without a smaller loss on the split dev, and "
        "take the best one; by default as the preset says.", 1,
    )  # fmt: skip
    whole(
        "min_relevant", 1,
        "For a BEIR folder without clicks: grade from which a judged title of "
        "the training split counts as clicked.", 1,
    )  # fmt: skip
    whole(
        "seed", 0, "Seed of the weights, the order and all random draws.",
        0, 2**32 - 1,
    )  # fmt: skip
    choice(
        "preset", "lstm_96",
        [
            *TOWER_PRESETS,
            *SCORER_PRESETS,
            *KEYVEC_PRESETS,
            RANKER,
        ],
        "Recipe: two towers (a system of the paper, `best`, or `taught` for "
        "--teacher), a pair scorer (such as `mv_lstm_tensor`), `keyvec` for "
        "documents, or `ranker`, boosted trees over --features "
        "(docs/rerank.md). The flags below change single values of it; their "
        "default is the preset's.",
    )  # fmt: skip
    whole("epochs", None, "Passes over the pairs or documents.", 1)
    whole("batch_size", None, "Pairs or documents in a batch.", 1)
    whole(
        "shuffle_buffer", None,
        "Pairs held in memory to be shuffled; a longer log is shuffled in "
        "blocks of lines.", 1,
    )  # fmt: skip
    real("learning_rate", None, "The fixed learning rate, epsilon.", _LEAST)
    real(
        "threshold", None,
        "Largest norm of a tower's gradient, th_G; a larger one is scaled to "
        "it.",
        _LEAST,
    )  # fmt: skip
    real("gamma", None, "Scale of the cosines in the softmax.", _LEAST)
    choice(
        "negatives", None, list(NEGATIVES),
        "`random`: --n random documents of the batch, as in the paper; "
        "`in_batch`: all other documents of the batch, which often gives "
        "better models.",
    )  # fmt: skip
    whole("n", None, "Negatives for a query with --negatives=random.", 1)
    choice(
        "towers", None, list(TOWERS),
        "`equal_start`: two encoders that start from the same random "
        "weights; `separate`: from different ones; `tied`: one encoder for "
        "queries and documents.",
    )  # fmt: skip
    whole(
        "title_pairs", None,
        "Also train on this many synthetic pairs from each title of --data, "
        "clicked or not: some words of the title, a fifth of them "
        "misspelled, as the query.", 0,
    )  # fmt: skip
    whole(
        "hard_negatives", None,
        "Mined negatives for each click: titles near the query that were not "
        "clicked for it.", 0,
    )  # fmt: skip
    whole(
        "mine_every", None,
        "Mine negatives every n epochs; the first n epochs have no mined "
        "negatives.", 1,
    )  # fmt: skip
    whole(
        "mine_top", None,
        "Number of nearest titles that mined negatives are drawn from.", 1,
    )  # fmt: skip
    whole(
        "mine_clusters", None,
        "Clusters of titles that a query is compared with in mining, such as "
        "16 in a log of a million titles; 0: all titles, of a large log a "
        "sample.", 0,
    )  # fmt: skip
    whole(
        "judged_negatives", None,
        "Judged negatives for each click: titles with a grade below "
        "--min_relevant for the query; needs a BEIR folder as --data.", 0,
    )  # fmt: skip
    switch(
        "logq", None,
        "Correct the scores of in-batch negatives for how often each title "
        "is clicked (logQ correction).",
    )  # fmt: skip
    whole(
        "oov_buckets", None,
        "Embedding rows for letters beyond a-z and 0-9: 8192 for texts in "
        "other scripts; 0, as in the paper, reads all such letters as #.", 0,
    )  # fmt: skip
    choice(
        "words", None, list(WORDS),
        "Pair scorers, KeyVec: `vocabulary`, a vector for each word of the "
        "training texts; `stems`, one for its forms without English endings; "
        "`trigrams`, the sum of a word's letter trigrams.",
    )  # fmt: skip
    whole(
        "mined_negatives", None,
        "Pair scorers: negatives for each query of click files, the nearest "
        "titles by BM25 that were not clicked for it.", 1,
    )  # fmt: skip
    text(
        "negatives_from", None,
        "Pair scorers: folder of a run of two towers; its nearest titles, "
        "not those by BM25, are the mined negatives of click files.",
    )  # fmt: skip
    real("margin", None, "Pair scorers: the margin of the hinge loss.", _LEAST)
    text(
        "teacher", None,
        "Two towers: folder of lstm-dssm-teach, whose vectors the towers also "
        "learn from. Needs the same --data.",
    )  # fmt: skip
    real(
        "teacher_weight", None,
        "With --teacher: weight of the teacher's part of the loss, beside the "
        "1 of the clicks.", _LEAST,
    )  # fmt: skip
    real(
        "teacher_temperature", None,
        "With --teacher: what its cosines are divided by in the softmax; a "
        "smaller one compares the nearest titles only.", _LEAST,
    )  # fmt: skip
    real(
        "teacher_gamma", None,
        "With --teacher: scale of the towers' cosines in the softmax that is "
        "compared with the teacher's.", _LEAST,
    )  # fmt: skip
    text(
        "init", None,
        "Folder of a run, from whose weights a new run starts, with the "
        "recipe of that run unless --preset is given (docs/train.md).",
    )  # fmt: skip
    text(
        "replay", None,
        "With --init, two towers: old click files, a colon and how many of "
        "their clicks each epoch draws for a new one, such as old.tsv:0.2.",
    )  # fmt: skip
    define_keyvec_flags(values)
    define_ranker_flags(values)
    for name in (
        "learning_rate", "threshold", "gamma", "margin", *TEACHER_FLAGS,
    ):  # fmt: skip
        flags.register_validator(
            name, is_finite, EXPECTED_FINITE, flag_values=values
        )
    define_bad_line_flags(values)
