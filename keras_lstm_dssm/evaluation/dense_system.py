"""DenseSystem: ranks by the cosine of two encoders' vectors."""

from collections.abc import Mapping, Sequence

from keras_lstm_dssm.evaluation.index import (
    Encode,
    Index,
    cosines,
    encode_texts,
    unit_vectors,
)
from keras_lstm_dssm.evaluation.ranking import (
    ListScorer,
    ListScores,
    Run,
    strictly_descending,
)


class DenseSystem(ListScorer):
    """Ranks by equation (3), the cosine R(Q, D) of query and document.

    Args:
        encode_query: Function from n query texts to float `[n, d]`.
        encode_document: Function from n titles to float `[n, d]`; each
            distinct title is encoded once.

    Example:
    >>> system = DenseSystem(
    ...     model.query_encoder.encode, model.document_encoder.encode
    ... )
    >>> run = system.retrieve(queries, documents, depth=1000)
    """

    def __init__(self, encode_query: Encode, encode_document: Encode) -> None:
        self.encode_query = encode_query
        self.encode_document = encode_document

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates; see `ListScorer.list_scores`."""
        needed = dict.fromkeys(d for ids in candidates.values() for d in ids)
        row = {d: i for i, d in enumerate(needed)}
        document_vectors = unit_vectors(
            encode_texts(self.encode_document, (documents[d] for d in row))
        )
        query_vectors = unit_vectors(
            encode_texts(self.encode_query, (queries[q] for q in candidates))
        )
        lists = {}
        for query_id, vector in zip(candidates, query_vectors, strict=True):
            ids = candidates[query_id]
            scores = cosines(document_vectors[[row[d] for d in ids]], vector)
            lists[query_id] = dict(zip(ids, scores.tolist(), strict=True))
        return lists

    def retrieve(
        self,
        queries: Mapping[str, str],
        documents: Mapping[str, str],
        depth: int,
    ) -> Run:
        """Searches the whole corpus exactly; see `System.retrieve`."""
        index = Index(
            self.encode_document,
            documents.values(),
            documents,
            self.encode_query,
        )
        query_ids = list(queries)
        rows, scores = index.nearest(
            encode_texts(self.encode_query, queries.values()), depth, query_ids
        )
        run = {}
        for query_id, row, score in zip(query_ids, rows, scores, strict=True):
            document_ids = [index.ids[i] for i in row]
            strict = strictly_descending(score).tolist()
            run[query_id] = dict(zip(document_ids, strict, strict=True))
        return run
