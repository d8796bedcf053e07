"""The settings of the tables of each paper, and of a table of few clicks."""

import dataclasses
from pathlib import Path
from typing import Any

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import read_json, write_json

PAPER_OPTIONS: dict[str, dict[str, Any]] = {
    "table_iv": {
        "epochs": 30,
        "batch_size": 256,
        "min_relevant": 1,
        "depth": 1000,
        "learning_rates": (0.003, 0.01, 0.03, 0.1),
        "gammas": (5.0, 3.0, 10.0),
        "search": 0.15,
        "dev_evaluations": 5,
        "misspelled": (),
        "judged_negatives": 0,
        "paragraphs": None,
    },
    "mv_lstm": {
        "epochs": 7,
        "batch_size": 128,
        "min_relevant": 1,
        "learning_rates": (0.003, 0.01, 0.03, 0.1, 0.3),
        "search": 0.3,
        "dev_evaluations": 7,
        "misspelled": (),
        "select": None,
    },
    "keyvec": {
        "epochs": 30,
        "batch_size": 32,
        "min_relevant": 1,
        "learning_rates": (0.003,),
        "search": 0.5,
        "dev_evaluations": 4,
        "salience": "bm25",
    },
    "few_clicks": {
        "min_relevant": 1,
        "depth": 1000,
        "dev_evaluations": 6,
        "misspelled": (),
        "teacher": None,
    },
}
"""Name of a paper's tables -> the settings that a user can choose, with their
defaults."""

PAPER_FIXED: dict[str, dict[str, Any]] = {
    "mv_lstm": {"lists": True, "gammas": ()},
    "keyvec": {"documents": True, "gammas": ()},
    "few_clicks": {"dev_mode": "retrieve"},
}
"""Name of a paper's tables -> their further settings."""

LEARNING_CURVES = ("table_iv", "few_clicks")
"""Names of papers whose tables `--pairs` extends by a learning curve: the same
systems, trained on parts of the clicks."""

PAPER_ALIASES = {"lstm_dssm": "table_iv"}
"""Another name that `--paper` takes -> the name in `PAPER_OPTIONS`."""


@dataclasses.dataclass(frozen=True)
class TableSettings:
    """All that a system's results depend on, except its seed.

    Attributes:
        data: `"api"`, `"api_sentences"`, or the path of a BEIR folder; for
            documents `"api_documents"` or the path of a folder.
        epochs: Passes over the clicks in the training of tuned rows.
        batch_size: Clicks in a training batch of tuned rows.
        min_relevant: Grade from which a document is relevant in retrieval,
            and counts as clicked where the data has no click log.
        depth: Number of documents that a system retrieves for each query.
        learning_rates: Learning rates to try on dev.
        gammas: Scales of the cosines to try on dev; every learning rate is
            tried with the first.
        search: Share of the epochs that a trial on dev takes.
        dev_evaluations: Number of evaluations on dev during a training, at
            evenly spread epochs.
        misspelled: Shares of the words of test queries to misspell, each for
            a further evaluation.
        paragraphs: Text file that Skip-Thought is trained on; `None` for the
            docstrings of the Python packages on this machine.
        pairs: Approximate number of clicks to train on, all of some queries;
            `None` for all clicks.
        updates_of: Number of clicks that sets the number of updates of every
            neural system; `None` for that of the clicks it is trained on.
        judged_negatives: Number of further negatives for each click, from the
            documents judged below `min_relevant` for its query.
        lists: Whether systems are measured on judged lists only, in
            expectation over ties.
        documents: Whether systems are trained and measured on the documents
            of a folder, see `open_document_data`.
        salience: Teacher of the key sentences of documents, see
            `salience_teacher`.
        select: The measure for choices on dev, with `lists`; `None` lets the
            data decide, see `open_table_data`.
        dev_mode: `"rerank"` or `"retrieve"`, how systems are measured on dev;
            `None` lets the data decide, see `open_table_data`.
        teacher: Folder of `lstm-dssm-teach`, with the vectors of the training
            queries and titles of `data`, for rows that need a teacher.

    Example:
    >>> settings = TableSettings("parts", epochs=5, learning_rates=(0.1,))
    >>> settings.epochs, settings.min_relevant
    (5, 1)
    """

    data: str
    epochs: int = 30
    batch_size: int = 256
    min_relevant: int = 1
    depth: int = 1000
    learning_rates: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1)
    gammas: tuple[float, ...] = (5.0, 3.0, 10.0)
    search: float = 0.15
    dev_evaluations: int = 5
    misspelled: tuple[float, ...] = ()
    paragraphs: str | None = None
    pairs: int | None = None
    updates_of: int | None = None
    judged_negatives: int = 0
    lists: bool = False
    documents: bool = False
    salience: str = "bm25"
    select: str | None = None
    dev_mode: str | None = None
    teacher: str | None = None

    def teacher_folder(self) -> str:
        """Returns the folder of the teacher, for systems that need one.

        Raises:
            InputError: It is None.
        """
        if self.teacher is None:
            raise InputError(
                "--teacher is missing: give the folder that lstm-dssm-teach"
                " has written for these data, or name --systems without a"
                " teacher"
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
        for name, recorded in read_json(path).items():
            if values.get(name) != recorded:
                raise InputError(
                    f"{path}: found {name} {recorded}, expected"
                    f" {values.get(name)}, as the results in a folder have the"
                    " same settings: give these settings again, or another"
                    " --output"
                )
