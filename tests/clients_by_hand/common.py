"""What the scripts share: questions of the demo, and how a client is judged.

docs/clients.md says how they are run: each by a Python that has its client and
NumPy, so that no client is a dependency of the package or of its tests.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # last, so that no folder of ours hides a package

from lstm_dssm_client import HttpClient  # noqa: E402

URL = os.environ.get("DSSM_URL", "http://127.0.0.1:8501")
QUESTIONS = Path(
    os.environ.get("DSSM_QUESTIONS", ROOT / "build/questions.json")
)
SIDES = ("query_encoder", "document_encoder")
TOP = 10
os.environ["OPENAI_API_KEY"] = os.environ["CO_API_KEY"] = "none"

Embed = Callable[[list[str]], Any]
"""Returns the vectors of texts."""

Rank = Callable[[str, list[str]], Sequence[tuple[int, float]]]
"""Returns index and score of the best documents for a query, best first."""


@cache
def questions() -> dict[str, Any]:
    """Returns `queries`, `titles`, and for each query its relevant titles."""
    return json.loads(QUESTIONS.read_text())


@cache
def expected() -> list[np.ndarray]:
    """Returns the vectors of queries and titles by our own client."""
    texts = questions()["queries"], questions()["titles"]
    with HttpClient(URL, timeout=60) as client:
        return [
            client.encode(rows, model)
            for rows, model in zip(texts, SIDES, strict=True)
        ]


def mrr(queries: np.ndarray, titles: np.ndarray) -> float:
    """Returns the mean reciprocal rank of the first relevant of 10 titles."""
    ranks = []
    for vector, relevant in zip(queries, questions()["relevant"], strict=True):
        best = np.argsort(-(titles @ vector), kind="stable")[:TOP]
        hits = np.flatnonzero(np.isin(best, relevant))
        ranks.append(1 / (1 + hits[0]) if len(hits) else 0.0)
    return float(np.mean(ranks))


def embeds(
    client: str, embed_queries: Embed, embed_titles: Embed, apart: float = 1e-6
) -> None:
    """Prints MRR@10 by a client, whose vectors must be near the encoders'."""
    texts = questions()["queries"], questions()["titles"]
    found = [
        np.array(embed(rows), np.float32)
        for embed, rows in zip(
            (embed_queries, embed_titles), texts, strict=True
        )
    ]
    difference = max(
        float(abs(a - b).max()) for a, b in zip(found, expected(), strict=True)
    )
    print(
        f"{client}: MRR@10 {mrr(*found):.4f}, {difference:.0e} apart",
        flush=True,
    )
    assert difference < apart


def ranks(client: str, rank: Rank) -> None:
    """Compares what a client ranks, of 1,000 titles, with cosines."""
    queries, titles = expected()
    for row, query in enumerate(questions()["queries"][:20]):
        documents = questions()["titles"][:1000]
        scores = titles[:1000] @ queries[row]
        found = rank(query, documents)
        for place, (index, score) in enumerate(found):
            assert abs(score - scores[index]) < 1e-6
            assert abs(score - np.sort(scores)[-1 - place]) < 1e-6
    print(f"{client}: ranks by the cosine, {len(found)} of 1,000", flush=True)


def recipe(heading: str) -> dict[str, Any]:
    """Runs the first block of Python below a heading of docs/clients.md."""
    page = (ROOT / "docs/clients.md").read_text()
    below = page.split(f"# {heading}\n", 1)[1]
    (code,) = re.findall(r"(?ms)^```python\n(.*?)^```", below)[:1]
    names: dict[str, Any] = {}
    exec(code.replace("http://127.0.0.1:8501", URL), names)
    return names
