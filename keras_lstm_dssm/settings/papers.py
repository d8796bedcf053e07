"""The settings of the tables of each paper, and of a table of few clicks."""

import dataclasses
from pathlib import Path
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.plain_files import read_json
from keras_lstm_dssm.settings.choices import LIST_MEASURES
from keras_lstm_dssm.settings.fields import setting

PAPER_DEFAULTS: dict[str, dict[str, Any]] = {
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
"""Name of a paper's tables -> their settings that are not the defaults of
`TableSettings`."""

LEARNING_CURVES = ("table_iv", "few_clicks")
"""Names of papers whose tables `--pairs` extends by a learning curve: the same
systems, trained on parts of the clicks."""

_ALL = tuple(PAPER_DEFAULTS)
_TUNED = ("table_iv", "mv_lstm", "keyvec")


@dataclasses.dataclass(frozen=True)
class TableSettings:
    """All that a system's results depend on, except its seed.

    Attributes:
        data: `"api"`, `"api_sentences"`, or the path of a BEIR folder; for
            documents `"api_documents"` or the path of a folder.
        epochs: Passes over the training data; the best epoch on dev is
            measured on test. `best` has the epochs of its own recipe.
        batch_size: Clicks or triples in a training batch. `best` has the batch
            size of its own recipe.
        min_relevant: Grade from which a document is relevant in retrieval and
            in judged lists, and clicked where the data has no click log.
        depth: Number of documents retrieved for each query.
        learning_rates: Learning rates to choose from on dev.
        gammas: Scales of the cosines to choose from on dev; every learning
            rate is tried with the first one.
        search: Share of the epochs that each trial on dev lasts.
        dev_evaluations: Number of evaluations on dev during a training.
        misspelled: Also measure with these shares of the query words
            misspelled: 0.1,0.2.
        paragraphs: Text file for Skip-Thought, a sentence on each line, blank
            lines between paragraphs; without it, docstrings of installed
            packages.
        pairs: Train on about this many clicks only, all of some queries. By
            default all.
        updates_of: Number of clicks that sets the number of updates of every
            neural system; `None` for that of the clicks it is trained on.
        judged_negatives: Number of further negatives for each click, from the
            documents judged below `min_relevant` for its query.
        lists: Whether systems are measured on judged lists only, in
            expectation over ties.
        documents: Whether systems are trained and measured on the documents
            of a folder.
        salience: What chooses the key sentences that KeyVec learns: bm25,
            trigrams, lead (the first sentences), or the run folder of two
            towers.
        clusters_of: What is clustered: test, or all documents of all splits.
        select: The measure of choices on dev; without it, p@1 where each dev
            query has one relevant document, and otherwise map.
        dev_mode: `"rerank"` or `"retrieve"`, how systems are measured on dev;
            `None` lets the data decide.
        teacher: Folder that lstm-dssm-teach has written for these data, with
            the vectors of an encoder, to which the words of hybrids are
            fitted.

    Example:
    >>> settings = TableSettings("parts", epochs=5, learning_rates=(0.1,))
    >>> settings.epochs, settings.min_relevant
    (5, 1)
    """

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
        """Returns the folder of the teacher, for systems that need one.

        Raises:
            InputError: It is None.
        """
        if self.teacher is None:
            raise InputError(
                "--set teacher is missing: give the folder that"
                " lstm-dssm-teach has written for these data, or name"
                " --systems without a teacher"
            )
        return self.teacher

    def record(self, folder: Path, sizes: dict[str, int]) -> None:
        """Writes `settings.json`, or checks that an existing one is equal.

        Args:
            folder: Folder of the results, created if it does not exist.
            sizes: Sizes of the data, which must stay the same, too.

        Raises:
            InputError: The folder holds results of other settings or data.
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
                    f"{path}: found {name} {recorded.get(name)}, expected"
                    f" {values.get(name)}, as the results in a folder have the"
                    " same settings: give these settings again, or another"
                    " --output"
                )
