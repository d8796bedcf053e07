"""`ServerBounds`, the fields of `serving.Bounds`, for the server's flags."""

import dataclasses
from typing import ClassVar

from keras_lstm_dssm.settings.choices import BATCH_SIZES
from keras_lstm_dssm.settings.fields import Settings, setting

PROTOCOLS = ("openai", "embed", "rerank")
"""Those that a server answers beside TF Serving's."""


@dataclasses.dataclass(frozen=True)
class ServerBounds(Settings):
    """Maximum sizes and number of requests, and the protocols allowed.

    Attributes:
        max_rows: Maximum number of rows in a request, by default the
            max_batch_size of the exported batching.config.
        max_text_kb: Maximum size of a text in a request, in KiB.
        max_k: Maximum number of results for a text, `k` of a retriever and
            `n` of a KeyVec. The retriever's own limit is that of
            lstm-dssm-export --max_k.
        max_message_mb: Maximum size of a request, in MiB, also once a message
            that states a shape and few values is expanded to it.
        max_requests: Maximum number of requests of each protocol that are
            computed or wait; others are refused at once (RESOURCE_EXHAUSTED,
            429).
        protocols: The protocols that HTTP has beside TF Serving's: openai
            (/v1/embeddings and /v1/models), embed (/v1/embed and /v2/embed)
            and rerank (/v1/rerank and /v2/rerank).
    """

    noun: ClassVar[str] = "server"

    max_rows: int = setting(BATCH_SIZES[-1], most=2**31 - 1)
    max_text_kb: int = setting(1024, most=2**21)
    max_k: int = setting(10_000, most=2**31 - 1)
    max_message_mb: int = setting(16, most=2047)
    max_requests: int = setting(128, most=2**31 - 1)
    protocols: tuple[str, ...] = setting(PROTOCOLS, each=PROTOCOLS)
