"""System: whatever orders documents for queries."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from keras_lstm_dssm.evaluation.ranking import Run


class System(Protocol):
    """What is evaluated: a trained model, BM25, a language model...

    A system holds what it learnt in training and no corpus: both modes get
    the documents, so that one object serves any number of collections.
    """

    def rerank(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> Run:
        """Orders given candidates.

        Args:
            queries: Query id -> text.
            candidates: Query id -> ids of the documents to order; its keys
                are the queries of the run.
            documents: Document id -> title, the whole corpus: what counts
                words in it (IDF) sees all of it.

        Returns:
            All candidates of each query, best first.
        """
        ...

    def retrieve(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        depth: int,
    ) -> Run:
        """Finds the best documents of the whole corpus.

        Args:
            queries: Query id -> text.
            documents: Document id -> title.
            depth: Documents returned for each query at most; a system may
                return fewer when the others do not match at all.

        Returns:
            The best documents of each query, best first.
        """
        ...
