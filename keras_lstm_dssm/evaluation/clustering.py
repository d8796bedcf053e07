"""Clusters document vectors by k-means, and compares clusters and classes."""

import functools
import warnings
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.errors import InputError, check_at_least, import_optional
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.evaluation.measures import QueryMeasures, mean
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.settings.fields import CLUSTER_MEASURES

K_MEANS_SEEDS = 5  # default number of k-means runs that are averaged
_RANDOM_DRAWS = 20


def cluster_measures(
    classes: Sequence[Hashable], clusters: Sequence[Hashable]
) -> dict[str, float]:
    """Computes the measures of `ClusterTask` from classes and clusters."""
    if len(classes) != len(clusters) or not len(classes):
        raise InputError(
            f"found the clusters of {len(clusters)} documents and the classes"
            f" of {len(classes)}: expected a cluster and a class for each"
            " document, and one or more documents"
        )
    metrics = import_optional("sklearn.metrics", "baselines")
    pairs = metrics.cluster.pair_confusion_matrix(classes, clusters)
    (_, only_cluster), (only_class, both) = pairs.tolist()
    in_either = 2 * both + only_cluster + only_class
    return {
        "f1": 2 * both / in_either if in_either else 0.0,
        "v": float(metrics.v_measure_score(classes, clusters)),
        "ari": float(metrics.adjusted_rand_score(classes, clusters)),
        "ami": float(metrics.adjusted_mutual_info_score(classes, clusters)),
    }


def k_means(
    vectors: Any,  # array or sparse matrix `[n, d]`
    clusters: int,
    seed: int = 0,
) -> np.ndarray:
    """Scales vectors to length 1; returns their k-means clusters, int `[n]`.

    If there are fewer distinct vectors than `clusters`, each distinct vector is
    a cluster.
    """
    if not 1 <= clusters <= vectors.shape[0]:
        raise InputError(
            f"clusters is {clusters}: expected 1 to {vectors.shape[0]}, the"
            " number of vectors"
        )
    cluster = import_optional("sklearn.cluster", "baselines")
    exceptions = import_optional("sklearn.exceptions", "baselines")
    model = cluster.KMeans(clusters, n_init=10, random_state=seed)
    with warnings.catch_warnings():
        # scikit-learn warns if there are fewer distinct vectors than clusters.
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        # In float32, clusters would depend on the number of threads.
        return model.fit_predict(_unit_rows(vectors).astype(np.float64))


def _unit_rows(vectors: Any) -> Any:
    if isinstance(vectors, np.ndarray):
        return unit_vectors(vectors, "document")
    preprocessing = import_optional("sklearn.preprocessing", "baselines")
    return preprocessing.normalize(vectors)


class ClusterTask(NamedTuple):
    """Documents of known classes, to cluster by their vectors.

    The vectors of a system are scaled to unit length, and clustered by k-means
    (the best of 10 starts) once for each seed. The number of clusters is the
    number of classes. The measures compare clusters and classes:

    - `"f1"`: F1 of pairs of documents. A pair is relevant if its documents have
      the same class, and retrieved if they are in the same cluster.
    - `"v"`: the V-measure (Rosenberg and Hirschberg 2007). With many small
      classes, random clusters have a V near 1.
    - `"ari"`: the adjusted Rand index (Hubert and Arabie 1985), about 0 for
      random clusters.
    - `"ami"`: adjusted mutual information (Vinh et al. 2010), about 0 for
      random clusters.

    Attributes:
        documents: Document id -> text. All documents have a class.
        classes: Document id -> class, in the order of `documents`.
        without_class: Number of documents without a class, which are left out.
        seeds: Number of k-means runs, with the seeds 0 to seeds - 1.

    Example:
    >>> texts = {"a": "red hat", "b": "blue hat", "c": "hose"}
    >>> labels = {"a": "wear", "b": "wear", "c": "tools"}
    >>> task = ClusterTask.from_classes(texts, labels, seeds=2)
    >>> from keras_lstm_dssm.papers import TfidfSystem
    >>> system = TfidfSystem().fit(list(texts.values()))
    >>> _, measured = task.measure(system)
    >>> [values["ari"] for values in measured.values()]
    [1.0, 1.0]
    """

    documents: Mapping[str, str]
    classes: Mapping[str, str]
    without_class: int = 0
    seeds: int = K_MEANS_SEEDS

    @classmethod
    def from_classes(
        cls,
        documents: Mapping[str, str],
        classes: Mapping[str, str | None],
        seeds: int = K_MEANS_SEEDS,
    ) -> "ClusterTask":
        """Makes a task of the documents that have a class.

        Args:
            documents: Document id -> text.
            classes: Document id -> class. A document is left out if its class
                is missing, `None` or empty.
            seeds: Number of k-means runs.

        Raises:
            InputError: `seeds` is below 1, or there are fewer than two classes.

        Example:
        >>> texts = {"a": "red hat", "b": "blue hat", "c": "garden hose"}
        >>> task = ClusterTask.from_classes(texts, {"a": "wear", "c": "tools"})
        >>> task.describe()
        '2 documents in 2 classes (2 with only one document); left out: 1
        without a class'
        """
        check_at_least(1, seeds=seeds)
        known = {d: label for d in documents if (label := classes.get(d))}
        if len(set(known.values())) < 2:
            raise InputError(
                f"found {len(set(known.values()))} classes in"
                f" {len(documents)} documents: expected two or more classes"
            )
        return cls(
            {d: documents[d] for d in known},
            known,
            len(documents) - len(known),
            seeds,
        )

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the measures."""
        return CLUSTER_MEASURES

    @property
    def sizes(self) -> dict[str, int]:
        """Name of a count -> count of documents or of classes."""
        counts = Counter(self.classes.values())
        return {
            "documents": len(self.documents),
            "classes": len(counts),
            "single_document_classes": sum(n == 1 for n in counts.values()),
            "without_class": self.without_class,
        }

    def describe(self) -> str:
        """Describes the numbers of documents and classes in one line."""
        documents, classes, single, without = self.sizes.values()
        text = f"{documents:,} documents in {classes:,} classes"
        if single:
            text += f" ({single:,} with only one document)"
        if without:
            text += f"; left out: {without:,} without a class"
        return text

    def accepts(self, system: System) -> bool:
        """Returns whether a system computes vectors of documents."""
        return system.encode_document is not None

    def measure(self, system: System) -> tuple[None, QueryMeasures]:
        """Returns `None`, and k-means seed -> measure -> value.

        `None` takes the place of a run, because clusters rank no documents.
        Raises `InputError` for a system without vectors of documents.
        """
        encode = system.encode_document
        if encode is None:
            raise InputError(
                f"{type(system).__name__} has no encode_document: expected a"
                " system that computes vectors of documents"
            )
        vectors = encode(list(self.documents.values()))
        labels = list(self.classes.values())
        return None, {
            str(seed): cluster_measures(
                labels, k_means(vectors, self.sizes["classes"], seed).tolist()
            )
            for seed in range(self.seeds)
        }

    def random_queries(self) -> QueryMeasures:
        """Returns seed -> measure -> mean value of 20 random clusterings."""
        values = _random_measures(tuple(self.classes.values()))
        return {str(seed): dict(values) for seed in range(self.seeds)}

    def random(self) -> dict[str, float]:
        """Returns the mean of each measure for random clusters."""
        return mean(self.random_queries())


@functools.lru_cache(8)
def _random_measures(labels: tuple[str, ...]) -> dict[str, float]:
    clusters = len(set(labels))
    generator = np.random.default_rng(0)
    draws = {
        str(draw): cluster_measures(
            labels, generator.integers(clusters, size=len(labels)).tolist()
        )
        for draw in range(_RANDOM_DRAWS)
    }
    return mean(draws)
