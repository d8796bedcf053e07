"""openai: each encoder by its name, one version of it, and the models."""

import openai
from common import SIDES, URL, embeds

client = openai.OpenAI(base_url=f"{URL}/v1", api_key="none")
assert {*SIDES, "towers"} <= {each.id for each in client.models.list()}
assert client.models.retrieve("towers").id == "towers"


def embed(texts: list[str], name: str) -> list[list[float]]:
    rows = []
    for start in range(0, len(texts), 2048):
        part = texts[start : start + 2048]
        reply = client.embeddings.create(model=name, input=part)
        name = reply.model  # such as query_encoder@3: the version stays
        rows += [each.embedding for each in reply.data]
    return rows


embeds(
    f"openai {openai.__version__}",
    lambda texts: embed(texts, SIDES[0]),
    lambda texts: embed(texts, SIDES[1]),
)
