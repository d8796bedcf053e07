"""DocumentTableData: the documents to train on, and the tasks on them."""

from dataclasses import dataclass

import numpy as np

from keras_lstm_dssm.baselines.tokenizers import alphanumeric
from keras_lstm_dssm.data import DocumentFolder, open_documents
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import document_tasks, document_text
from keras_lstm_dssm.evaluation.document_task import CLUSTER, RETRIEVE
from keras_lstm_dssm.tables.base_data import BaseTableData
from keras_lstm_dssm.tables.table_settings import TableSettings

_DEV_MEASURES = {RETRIEVE: "map", CLUSTER: "ari"}


@dataclass(frozen=True)
class DocumentTableData(BaseTableData):
    """Holds the documents to train on, and the tasks on dev and test.

    Attributes:
        titles: The documents of the split train, with one sentence on each
            line.
        dev: See `BaseTableData`.
        dev_measure: See `BaseTableData`.
        tests: `"retrieve"` -> `DocumentRetrieval`, `"cluster"` ->
            `ClusterTask`, or one of them.
        folder: The folder.
    """

    folder: DocumentFolder

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of documents, queries and classes, by name."""
        sizes = {
            "documents": self.folder.count(),
            "train_documents": len(self.titles),
        }
        if RETRIEVE in self.tests:
            sizes["dev_queries"] = len(self.dev.queries)
            sizes["retrieve_queries"] = len(self.tests[RETRIEVE].queries)
        if CLUSTER in self.tests:
            counts = self.tests[CLUSTER].sizes
            sizes |= {f"cluster_{name}": n for name, n in counts.items()}
        return sizes

    @property
    def words(self) -> dict[str, float]:
        """The mean numbers of sentences and words in a training document."""
        return {
            "sentences": float(
                np.mean([t.count("\n") + 1 for t in self.titles])
            ),
            "words": float(
                np.mean([len(alphanumeric(t)) for t in self.titles])
            ),
        }


def open_document_data(settings: TableSettings) -> DocumentTableData:
    """Opens the folder of documents that the settings name.

    Systems are trained on the split train. Choices on dev are made by the
    mean average precision of the queries of dev, which counts all of a
    query's documents, or by the adjusted Rand index of the clusters of its
    documents where there are no queries.

    Args:
        settings: `data` and `min_relevant` are used.

    Raises:
        InputError: The folder is malformed, a split has no documents, or
            test has queries and dev has none.

    Example:
    >>> settings = TableSettings("api_documents", documents=True)
    >>> list(open_document_data(settings).tests)
    ['retrieve', 'cluster']
    """
    folder = open_documents(settings.data)
    titles = [document_text(d.sentences) for d in folder.of("train")]
    if not titles:
        raise InputError(
            f"{folder.folder}: found no document of split 'train', expected"
            " documents to train on: give some the split train"
        )
    tests = document_tasks(folder, "test", settings.min_relevant)
    choices = document_tasks(folder, "dev", settings.min_relevant)
    mode = RETRIEVE if RETRIEVE in tests else CLUSTER
    if mode not in choices:
        raise InputError(
            f"{folder.folder}: found no qrels/dev.tsv, expected queries of dev"
            " as of test, for choices: judge some, or remove qrels/test.tsv"
        )
    return DocumentTableData(
        titles, choices[mode], _DEV_MEASURES[mode], tests, folder
    )
