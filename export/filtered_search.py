"""The signature `filtered`: a search of only the documents with some tags."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.export.document_tags import DocumentTags
from keras_lstm_dssm.export.document_vectors import DocumentVectors
from keras_lstm_dssm.export.encoder import GraphEncoder
from keras_lstm_dssm.export.input_ranks import vectors_only
from keras_lstm_dssm.export.retriever import (
    MAX_K,
    Allowed,
    GraphModule,
    RetrieverModule,
)
from keras_lstm_dssm.models import KeyVec
from lstm_dssm_client.signatures import FILTERED


class FilteredSearch(tf.Module):
    """Adds the signature `filtered` to a module that searches documents.

    A class has it as a base after the class of the search, whose method
    `_search` takes the documents that each query may find.

    Attributes:
        tags: The tags of the documents, set when the search has been built.
    """

    further_signatures = (FILTERED,)
    tags: DocumentTags
    _search: Callable[
        [tf.Tensor, tf.Tensor, Allowed | None], dict[str, tf.Tensor]
    ]

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "text"),
            tf.TensorSpec([None], tf.int32, "k"),
            tf.TensorSpec([None], tf.string, "tags"),
        ]
    )
    @vectors_only
    def filtered(
        self, text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """Searches only the documents with a tag; the signature `filtered`.

        The documents that a query finds are those that `serve` would find if
        there were no others.

        Args:
            text: See `serve`.
            k: See `serve`.
            tags: For each query tags that are separated by commas: documents
                that have any of them are found. All documents where it is "".

        Returns:
            See `serve`. Columns beyond the documents with a tag hold what
            those beyond a row's own k hold, too.
        """
        return self._search(text, k, self.tags.matches(tags))


class FilteredRetrieverModule(RetrieverModule, FilteredSearch):
    """A retriever whose documents have tags: it has a signature `filtered`.

    Args:
        encoder: See `RetrieverModule`; the arguments after it, too.
        tags: The tags of each document.
    """

    def __init__(
        self,
        encoder: GraphEncoder | KeyVec | GraphModule,
        ids: tf.Tensor,
        vectors: np.ndarray | DocumentVectors,
        kind: str = "float32",
        max_k: int = MAX_K,
        tags: Sequence[Sequence[str]] = (),
    ) -> None:
        super().__init__(encoder, ids, vectors, kind, max_k)
        self.tags = DocumentTags(tags)


def retriever_module(
    encoder: GraphEncoder | KeyVec | GraphModule,
    ids: tf.Tensor,
    vectors: np.ndarray | DocumentVectors,
    kind: str,
    max_k: int,
    tags: Sequence[Sequence[str]],
) -> RetrieverModule:
    """Makes a retriever, with the signature `filtered` if any title has tags.

    For the arguments see `FilteredRetrieverModule`; `tags` may be empty.
    """
    if any(tags):
        return FilteredRetrieverModule(encoder, ids, vectors, kind, max_k, tags)
    return RetrieverModule(encoder, ids, vectors, kind, max_k)
