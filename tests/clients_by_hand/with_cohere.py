"""cohere: one name for both encoders, and rerank."""

import cohere
from common import URL, embeds, ranks

for kind in (cohere.Client, cohere.ClientV2):
    client = kind(base_url=URL, api_key="none")

    def embed(texts: list[str], side: str, client=client) -> list[list[float]]:
        rows = []
        for start in range(0, len(texts), 2048):
            reply = client.embed(
                model="towers",
                texts=texts[start : start + 2048],
                input_type=side,
                embedding_types=["float"],
            )
            rows += reply.embeddings.float_
        return rows

    name = f"cohere {cohere.__version__} {kind.__name__}"
    embeds(
        name,
        lambda texts: embed(texts, "search_query"),
        lambda texts: embed(texts, "search_document"),
    )

    def rank(query: str, titles: list[str], client=client) -> list:
        reply = client.rerank(model="towers", query=query, documents=titles)
        return [(r.index, r.relevance_score) for r in reply.results]

    ranks(name, rank)
