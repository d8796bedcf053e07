"""Vercel's AI SDK: run it in the folder of Node's packages."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
from common import URL, embeds

SCRIPT = Path(__file__).with_name("ai_sdk.mjs")


def embed(provider: str, side: str, texts: list[str]) -> np.ndarray:
    asked = {"provider": provider, "side": side, "texts": texts}
    done = subprocess.run(
        ["node", SCRIPT],
        input=json.dumps(asked).encode(),
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "DSSM_URL": URL},
    )
    return np.frombuffer(done.stdout, np.float32).reshape(len(texts), -1)


for name in ("cohere", "openai-compatible"):
    embeds(
        f"AI SDK {name}",
        lambda texts, name=name: embed(name, "query", texts),
        lambda texts, name=name: embed(name, "document", texts),
    )
