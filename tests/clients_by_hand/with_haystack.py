"""Haystack: Cohere's, Jina's and OpenAI's components."""

from common import URL, embeds, ranks
from haystack import Document
from haystack.components.embedders import (
    OpenAIDocumentEmbedder,
    OpenAITextEmbedder,
)
from haystack.utils import Secret
from haystack_integrations.components.embedders.cohere import (
    CohereDocumentEmbedder,
    CohereTextEmbedder,
)
from haystack_integrations.components.embedders.jina import (
    JinaDocumentEmbedder,
    JinaTextEmbedder,
)
from haystack_integrations.components.rankers.cohere import CohereRanker
from haystack_integrations.components.rankers.jina import JinaRanker

key = {"api_key": Secret.from_token("none")}
whole = {"model": "towers", "base_url": f"{URL}/v1/embeddings", **key}
for name, query, document in (
    (
        "CohereTextEmbedder",
        CohereTextEmbedder(model="towers", api_base_url=URL, **key),
        CohereDocumentEmbedder(
            model="towers", api_base_url=URL, progress_bar=False, **key
        ),
    ),
    (
        "JinaTextEmbedder",
        JinaTextEmbedder(task="retrieval.query", **whole),
        JinaDocumentEmbedder(
            task="retrieval.passage", progress_bar=False, **whole
        ),
    ),
    (
        "OpenAITextEmbedder",
        OpenAITextEmbedder(
            model="query_encoder", api_base_url=f"{URL}/v1", **key
        ),
        OpenAIDocumentEmbedder(
            model="document_encoder",
            api_base_url=f"{URL}/v1",
            progress_bar=False,
            **key,
        ),
    ),
):

    def embed_titles(titles: list[str], document=document) -> list:
        documents = [Document(content=title) for title in titles]
        found = document.run(documents=documents)["documents"]
        return [each.embedding for each in found]

    embeds(
        name,
        lambda texts, query=query: [query.run(t)["embedding"] for t in texts],
        embed_titles,
    )
for ranker in (
    CohereRanker(model="towers", api_base_url=URL, **key),
    JinaRanker(model="towers", base_url=f"{URL}/v1/rerank", **key),
):

    def rank(query: str, titles: list[str], ranker=ranker) -> list:
        documents = [
            Document(content=title, meta={"row": row})
            for row, title in enumerate(titles)
        ]
        found = ranker.run(query=query, documents=documents)["documents"]
        return [(each.meta["row"], each.score) for each in found]

    ranks(type(ranker).__name__, rank)
