"""BaseTableData: the tasks that the systems of a table are measured on."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keras_lstm_dssm.evaluation import mean
from keras_lstm_dssm.evaluation.document_task import CLUSTER
from keras_lstm_dssm.tables.rows import Row

CHART_MEASURES = {
    "rerank": ("ndcg@10",),
    "retrieve": ("mrr@10",),
    "lists": ("p@1", "mrr"),
    CLUSTER: ("ari", "ami"),
}
"""Mode -> the measures in charts and overviews."""

MAIN_MEASURES = {mode: names[0] for mode, names in CHART_MEASURES.items()}
"""Mode -> the measure for significance, and for choices on dev unless
`TableSettings.select` names another."""


@dataclass(frozen=True)
class BaseTableData(ABC):
    """Base of `TableData` and `DocumentTableData`.

    Attributes:
        titles: The texts that baselines are trained on.
        dev: The task on the dev split, for choices.
        dev_measure: Name of the measure to maximise on dev.
        tests: Mode -> the task on the test split.
    """

    titles: list[str]
    dev: Any
    dev_measure: str
    tests: Mapping[str, Any]

    @property
    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """The numbers of documents, queries and others, by name."""

    @property
    @abstractmethod
    def words(self) -> dict[str, float]:
        """Counts of words, for the report."""

    def measure_on_dev(self, system: Any) -> float:
        """Measures a system on dev, from 0 to 1."""
        _, by_query = self.dev.measure(system)
        return mean(by_query, [self.dev_measure])[self.dev_measure]

    def tests_of(self, row: Row) -> dict[str, Any]:
        """Returns the tasks on test that the system of a row is measured on.

        These are all tasks, or all but clustering if it has no vectors.
        """
        return {
            mode: task
            for mode, task in self.tests.items()
            if row.vectors or mode != CLUSTER
        }
