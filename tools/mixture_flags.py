"""The flags --mix and --mix_weights: systems that a model is mixed with."""

from keras_lstm_dssm.command_line import Definers
from keras_lstm_dssm.settings.choices import BM25_TERMS, TOKENIZERS


def define_mixture_flags(define: Definers, parts: str, weights: str) -> None:
    """Defines the flags that add scores of other systems to the model's."""
    define.list(
        "mix", [],
        "Systems whose scores are added to those of the model, separated by "
        f"commas: {parts}.",
    )  # fmt: skip
    define.list(
        "mix_weights", [],
        "With --mix: a weight of 0 or more for the model of --run, then one "
        f"for each system of --mix, separated by commas{weights}.",
    )  # fmt: skip


def define_bm25_words(define: Definers, hybrid: bool = False) -> None:
    """Defines the flag that chooses how BM25 splits texts into words."""
    more = (
        " With --hybrid: English stems without stop words, words, or letter"
        " trigrams; by default as the titles' script suggests."
    )
    define.enum(
        "bm25_words", "model",
        ["model", *TOKENIZERS, *(BM25_TERMS if hybrid else ())],
        "The words of BM25: as the model reads them; separated by white "
        "space; runs of letters and digits; or stems of such runs, without "
        f"stop words.{more if hybrid else ''}",
    )  # fmt: skip
