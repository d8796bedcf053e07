"""Names that flags and functions choose from, and limits."""

NDCG_CUTOFFS = (1, 3, 5, 10)

MEASURES = (
    *(f"ndcg@{k}" for k in NDCG_CUTOFFS),
    "mrr@10",
    "map",
    "p@1",
    "p@10",
    "recall@10",
    "recall@100",
)
"""The measures of titles, in the order in which they are shown."""

LIST_MEASURES = ("p@1", "mrr", "map", "ndcg@3", "ndcg@5")
"""The measures of judged lists, in the order in which they are shown."""

CLUSTER_MEASURES = ("f1", "v", "ari", "ami")
"""Measures of clusters: pairwise F1, V-measure, adjusted Rand index and
adjusted mutual information."""

MODES = ("rerank", "retrieve")
"""What is evaluated: the order of judged documents, or a search."""

RANDOM_ORDER = "random"
"""The name of a random order in results."""

TOWERS = ("separate", "equal_start", "tied")
"""How the weights of two encoders start, see `Recipe`."""

NEGATIVES = ("random", "in_batch", "corpus")
"""The negatives of two towers, see `TwoTower`."""

WORDS = ("vocabulary", "stems", "trigrams")
"""Where word vectors come from, see `WordsRecipe`."""

KEY_WORDS_OF = ("summary", "document")
"""The texts whose words of highest TF-IDF are key words, see `KeyWords`."""

SALIENCE_TEACHERS = ("bm25", "trigrams", "lead")
"""The names of teachers of salient sentences that are not trained."""

DEFAULT_SALIENCE = "bm25"
"""The default teacher of salient sentences."""

TOKENIZERS = ("space", "alphanumeric", "stemmed")
"""How systems like BM25 split texts into words."""

BM25_TERMS = ("stems", "words", "trigrams")
"""What the BM25 of a hybrid retriever compares: English stems without stop
words, words, or letter trigrams of words (pairs, of Chinese)."""

HYBRID_PARTS = ("towers", "words", "bm25", "numbers", "hubness")
"""The parts of a hybrid retriever's score that have weights, in the order of
its outputs."""

MAP_METHODS = ("tsne", "pca")
"""Methods that lay out the map of a report."""

VECTORS = ("float32", "int8")
"""How a retriever stores the documents' vectors."""

FORMATS = ("npy", "parquet")
"""How parts are written: NumPy arrays and text, or one parquet file."""

MAX_K = 1000
"""Maximum number of results for a query; default of `max_k`."""

BATCH_SIZES = (
    *(1, 2, 3, 4, 6, 8, 12, 16, 24),
    *(32, 48, 64, 96, 128, 192, 256, 384, 512),
)
"""Batch sizes, in rows, to which a server pads its batches.

Padding costs as much as other rows, so each size is half as much again as the
one before, at most twice. Exports write them into `batching.config`; the last
is `max_batch_size`.
"""
