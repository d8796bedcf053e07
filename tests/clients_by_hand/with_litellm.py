"""litellm: its Cohere and OpenAI providers, and rerank."""

import litellm
from common import URL, embeds, ranks


def embed(texts: list[str], model: str, **options: str) -> list:
    rows = []
    for start in range(0, len(texts), 2000):
        part = texts[start : start + 2000]
        reply = litellm.embedding(model, part, api_key="none", **options)
        rows += [each["embedding"] for each in reply.data]
    return rows


def cohere(texts: list[str], side: str) -> list:
    at = f"{URL}/v2/embed"
    return embed(texts, "cohere/towers", api_base=at, input_type=side)


def openai(texts: list[str], side: str) -> list:
    return embed(texts, f"openai/{side}_encoder", api_base=f"{URL}/v1")


embeds(
    "litellm cohere/",
    lambda texts: cohere(texts, "search_query"),
    lambda texts: cohere(texts, "search_document"),
)
embeds(
    "litellm openai/",
    lambda texts: openai(texts, "query"),
    lambda texts: openai(texts, "document"),
)
for model, base in (
    ("cohere/towers", URL),
    ("hosted_vllm/towers", f"{URL}/v1"),
):

    def rank(query: str, titles: list[str], model=model, base=base) -> list:
        reply = litellm.rerank(
            model=model,
            query=query,
            documents=titles,
            api_base=base,
            api_key="none",
        )
        return [(r["index"], r["relevance_score"]) for r in reply.results]

    ranks(f"litellm {model}", rank)
