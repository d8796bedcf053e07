"""The log of the page in the form of User Behavior Insights, version 1.3.

Its two files are read by `data.click_pages`, and by the dashboards of search
engines. They name no client and no user.
"""

import json
import os
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.click_log import Pair
from keras_lstm_dssm.serving.clicks import (
    LIFETIME_SECONDS,
    ROTATE_MB,
    AppendedFile,
    ClickWriter,
)
from keras_lstm_dssm.text_files import cleaned

_APPLICATION = "lstm-dssm-serve"
_LONGEST_ID = 256  # of an object in the schema


class UbiWriter(ClickWriter):
    """Appends searches to `queries.ndjson` and clicks to `events.ndjson`.

    A search is written when its results are shown, and is on disk before its
    first click is. Ordinals begin with 1.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        rotate_mb: float = ROTATE_MB,
        lifetime: float = LIFETIME_SECONDS,
    ) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self._queries = AppendedFile(Path(folder, "queries.ndjson"), rotate_mb)
        try:
            super().__init__(Path(folder, "events.ndjson"), rotate_mb, lifetime)
        except BaseException:
            self._queries.close()
            raise

    def show(
        self,
        query: str,
        ids: Sequence[str],
        titles: Sequence[str],
        attributes: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Writes a search; returns the tokens of its results, in their order.

        A search without a word is not written, and neither are its clicks.
        Raises `OSError` if it cannot be written.
        """
        query = cleaned(query)
        query_id = str(uuid.uuid4()) if query else ""
        row = {
            "application": _APPLICATION,
            "query_id": query_id,
            "user_query": query,
            "timestamp": _now(),
            "query_attributes": dict(attributes or {}),
            "query_response_hit_ids": list(ids),
        }
        if query:
            with self._lock:
                self._queries.append(_encoded(row), sync=False)
        return [
            self.issue(query, json.dumps([query_id, key, place]))
            for place, key in enumerate(ids, 1)
        ]

    def _line(self, pair: Pair) -> bytes | None:
        query_id, key, place = json.loads(pair.document)
        if not query_id or len(key) > _LONGEST_ID:
            return None
        return _encoded(
            {
                "application": _APPLICATION,
                "action_name": "click",
                "query_id": query_id,
                "timestamp": _now(),
                "event_attributes": {
                    "object": {"object_id": key},
                    "position": {"ordinal": place},
                },
            }
        )

    def _append(self, line: bytes) -> None:
        self._queries.sync()
        super()._append(line)

    def close(self) -> None:
        """Closes both files."""
        super().close()
        self._queries.close()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _encoded(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row).encode() + b"\n"
