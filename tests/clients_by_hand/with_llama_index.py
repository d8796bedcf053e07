"""LlamaIndex: Cohere's and OpenAI's classes, and Jina's for rerank."""

from common import URL, embeds, ranks
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.embeddings.cohere import CohereEmbedding
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.postprocessor.cohere_rerank import CohereRerank
from llama_index.postprocessor.jinaai_rerank import JinaRerank

cohere = CohereEmbedding(
    model_name="embed-english-v3.0",
    base_url=URL,
    api_key="none",
    input_type="search_document",
)
# With `input_type=None` the class sends the side of each text by itself.
cohere.input_type = None
embeds(
    "CohereEmbedding",
    lambda texts: [cohere.get_query_embedding(text) for text in texts],
    cohere.get_text_embedding_batch,
)
query, document = (
    OpenAILikeEmbedding(
        model_name=f"{side}_encoder", api_base=f"{URL}/v1", api_key="none"
    )
    for side in ("query", "document")
)
embeds(
    "OpenAILikeEmbedding",
    query.get_text_embedding_batch,
    document.get_text_embedding_batch,
)
for reranker in (
    CohereRerank(model="towers", base_url=URL, api_key="none"),
    JinaRerank(model="towers", base_url=f"{URL}/v1", api_key="none"),
):

    def rank(query: str, titles: list[str], reranker=reranker) -> list:
        nodes = [
            NodeWithScore(node=TextNode(text=title, id_=str(row)), score=0)
            for row, title in enumerate(titles)
        ]
        found = reranker.postprocess_nodes(nodes, query_str=query)
        return [(int(hit.node.id_), hit.score) for hit in found]

    ranks(type(reranker).__name__, rank)
