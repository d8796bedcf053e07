"""AI SDK, cohere-ai, LangChain JS: run it in the folder of their packages."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from common import URL, embeds, ranks

SCRIPT = Path(__file__).with_name("node_clients.mjs")


def asked(**request: Any) -> np.ndarray:
    done = subprocess.run(
        ["node", SCRIPT],
        input=json.dumps(request).encode(),
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "DSSM_URL": URL},
    )
    return np.frombuffer(done.stdout, np.float32)


def embed(client: str, side: str, texts: list[str]) -> np.ndarray:
    vectors = asked(client=client, side=side, texts=texts)
    return vectors.reshape(len(texts), -1)


def rank(client: str, query: str, titles: list[str]) -> list:
    pairs = asked(client=client, query=query, titles=titles).reshape(-1, 2)
    return [(int(index), score) for index, score in pairs]


COHERE = "cohere-ai", "@langchain/cohere"
for name in (
    "AI SDK cohere",
    "AI SDK openai-compatible",
    "@langchain/openai",
    *COHERE,
):
    embeds(
        name,
        lambda texts, name=name: embed(name, "query", texts),
        lambda texts, name=name: embed(name, "document", texts),
    )
for name in COHERE:
    ranks(name, lambda *asked, name=name: rank(name, *asked))
