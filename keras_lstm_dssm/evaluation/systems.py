"""Systems that rank by vectors, by scores of pairs, or by corpus statistics."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import (
    Encode,
    Index,
    cosines,
    encode_texts,
    unit_vectors,
)
from keras_lstm_dssm.evaluation.runs import (
    Candidates,
    ListScores,
    Run,
    System,
    Texts,
    TieBreaker,
    strictly_descending,
)
from keras_lstm_dssm.evaluation.task import document_sentences

Scores = tuple[np.ndarray, np.ndarray | None]
"""A score for each title, float `[titles]`; and the positions of the titles
that match the query, or `None` if all titles match."""


class CorpusSystem(System):
    """Reranks and retrieves by a score for each title of a corpus.

    `rerank` and `retrieve` give a title the same score before ties are broken.
    """

    parameters = 0  # number of learnt parameters

    @abstractmethod
    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Yields the `Scores` of all titles for each query in turn."""

    def list_scores(
        self, queries: Texts, candidates: Candidates, documents: Texts
    ) -> ListScores:
        """Scores candidates; see `System.list_scores`."""
        row = {document_id: i for i, document_id in enumerate(documents)}
        texts = [queries[query_id] for query_id in candidates]
        scored = self.scores(texts, tuple(documents.values()))
        lists = {}
        for query_id, (scores, _) in zip(candidates, scored, strict=True):
            ids = candidates[query_id]
            listed = scores[[row[document_id] for document_id in ids]].tolist()
            lists[query_id] = dict(zip(ids, listed, strict=True))
        return lists

    def retrieve(self, queries: Texts, documents: Texts, depth: int) -> Run:
        """Searches the whole corpus; see `System.retrieve`."""
        ties = TieBreaker(list(documents))
        scored = self.scores(list(queries.values()), tuple(documents.values()))
        run = {}
        for query_id, (scores, match) in zip(queries, scored, strict=True):
            matching = scores if match is None else scores[match]
            run[query_id] = ties.rank(query_id, matching, depth, match)
        return run


class DenseSystem(System):
    """Ranks by the cosine of query and document: Palangi et al. 2016, eq. (3).

    Args:
        encode_query: Function from n query texts to float `[n, d]`.
        encode_document: Function from n titles to float `[n, d]`. Each
            distinct title is encoded once.

    Example:
    >>> system = DenseSystem(
    ...     model.query_encoder.encode, model.document_encoder.encode
    ... )
    >>> run = system.retrieve(queries, documents, depth=1000)
    """

    encode_document: Encode

    def __init__(self, encode_query: Encode, encode_document: Encode) -> None:
        self.encode_query = encode_query
        self.encode_document = encode_document

    def list_scores(
        self, queries: Texts, candidates: Candidates, documents: Texts
    ) -> ListScores:
        """Scores candidates; see `System.list_scores`."""
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

    def retrieve(self, queries: Texts, documents: Texts, depth: int) -> Run:
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


ScorePairs = Callable[[list[str], list[str]], np.ndarray]
"""Function from n queries and n documents to n scores, float `[n]`."""


class PairSystem(System):
    """Reorders candidates by a model that reads query and document together.

    Args:
        score_pairs: Function from n queries and n titles to float `[n]`,
            such as `PairScorer.score_pairs`.
        first_stage: System that retrieves the candidates. Without a first
            stage, `retrieve` raises `InputError`, because scoring all documents
            of a corpus with each query is too slow.

    Example:
    >>> system = PairSystem(scorer.score_pairs, first_stage=BM25System())
    >>> run = system.retrieve(queries, documents, depth=100)
    """

    def __init__(
        self, score_pairs: ScorePairs, first_stage: System | None = None
    ) -> None:
        self.score_pairs = score_pairs
        self.first_stage = first_stage

    def list_scores(
        self, queries: Texts, candidates: Candidates, documents: Texts
    ) -> ListScores:
        """Scores candidates; see `System.list_scores`."""
        pairs = [
            (query_id, document_id)
            for query_id, document_ids in candidates.items()
            for document_id in document_ids
        ]
        scores = self.score_pairs(
            [queries[query_id] for query_id, _ in pairs],
            [documents[document_id] for _, document_id in pairs],
        )
        lists: ListScores = {query_id: {} for query_id in candidates}
        for (query_id, document_id), score in zip(
            pairs, scores.tolist(), strict=True
        ):
            lists[query_id][document_id] = score
        return lists

    def retrieve(self, queries: Texts, documents: Texts, depth: int) -> Run:
        """Reorders the documents that the first stage retrieves."""
        if self.first_stage is None:
            raise InputError(
                "a pair scorer cannot search a corpus: give PairSystem a"
                " first_stage that finds candidates, or rerank judged lists"
            )
        first = self.first_stage.retrieve(queries, documents, depth)
        candidates = {query_id: list(ids) for query_id, ids in first.items()}
        return self.rerank(queries, candidates, documents)


def system_of(
    model: Any, first_stage: System | None = None, **options: Any
) -> DenseSystem | PairSystem:
    """Returns the system that ranks documents with a trained model.

    Args:
        model: A `TwoTower`, which ranks by cosine; a `PairScorer`, which ranks
            by its scores; or a `KeyVec`, which ranks by cosine. For a `KeyVec`,
            each line of a document is a sentence. `KeyVec.encode` splits a
            query into sentences, and encodes the query as a document.
        first_stage: System that retrieves the candidates of a `PairScorer` in
            a whole corpus.
        **options: `batch_size` and `progress` of `TextEncoder.encode` or
            `PairScorer.score_pairs`; `progress` of `KeyVec.encode`.

    Example:
    >>> task = Task.from_collection(collection, "dev")
    >>> task.evaluate(task.run(system_of(model)))["mrr@10"]
    0.71
    """
    if hasattr(model, "score_pairs"):
        score_pairs = partial(model.score_pairs, **options)
        return PairSystem(score_pairs, first_stage)
    if not hasattr(model, "query_encoder"):
        encode = partial(model.encode, **options)
        return DenseSystem(
            encode, lambda texts: encode(list(map(document_sentences, texts)))
        )
    encode = partial(model.query_encoder.encode, **options)
    if model.query_encoder is model.document_encoder:
        # Two `partial` objects are never equal. If both functions are the same
        # object, `with_cached_vectors` makes one cache for all texts.
        return DenseSystem(encode, encode)
    return DenseSystem(
        encode, partial(model.document_encoder.encode, **options)
    )


def words_of(model: Any) -> str:
    """Returns the key in `bm25.TOKENIZERS` for the `split` rule of a model."""
    layer = getattr(model, "words", None)
    if layer is None and hasattr(model, "document_encoder"):
        layer = model.document_encoder.trigrams
    split = getattr(layer, "split", "alphanumeric")
    return "stemmed" if split == "stems" else split


class CachedEncoder:
    """Encodes each text once; the encoder's weights must not change."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._vectors: dict[str, np.ndarray] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Returns vectors of n texts; encodes texts that are not yet cached."""
        new = [t for t in dict.fromkeys(texts) if t not in self._vectors]
        if new or not texts:
            encoded = np.asarray(self._encode(new))
            if not new:  # no texts: `encoded` is `[0, d]`
                return encoded
            if len(encoded) != len(new):
                raise InputError(
                    f"found {len(encoded)} vectors for {len(new)} texts,"
                    " expected a vector for each text"
                )
            self._vectors.update(zip(new, encoded, strict=True))
        return np.stack([self._vectors[text] for text in texts])


def with_cached_vectors(system: DenseSystem) -> DenseSystem:
    """Returns a system that encodes each text once."""
    encoders = system.encode_query, system.encode_document
    if all(isinstance(encode, CachedEncoder) for encode in encoders):
        return system
    encode_query = CachedEncoder(system.encode_query)
    if system.encode_document == system.encode_query:
        return DenseSystem(encode_query, encode_query)
    return DenseSystem(encode_query, CachedEncoder(system.encode_document))
