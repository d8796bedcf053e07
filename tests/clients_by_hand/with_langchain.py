"""LangChain: Cohere's classes. `with_recipes.py` has OpenAI's."""

from common import URL, embeds, ranks
from langchain_cohere import CohereEmbeddings, CohereRerank

at = {"model": "towers", "base_url": URL, "cohere_api_key": "none"}
model = CohereEmbeddings(**at)
embeds(
    "CohereEmbeddings",
    lambda texts: [model.embed_query(text) for text in texts],
    model.embed_documents,
)
reranker = CohereRerank(**at)
ranks(
    "CohereRerank",
    lambda query, titles: [
        (r["index"], r["relevance_score"])
        for r in reranker.rerank(titles, query)
    ],
)
