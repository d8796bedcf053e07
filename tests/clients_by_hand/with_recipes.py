"""The recipes of docs/clients.md: LangChain, Chroma, LanceDB."""

from common import embeds, expected, questions, recipe

both = recipe("LangChain")["embeddings"]
embeds(
    "OpenAIEmbeddings of LangChain",
    lambda texts: [both.embed_query(text) for text in texts],
    both.embed_documents,
)

chroma = recipe("Chroma")
towers = chroma["Towers"]()
embeds("Chroma", towers.embed_query, towers)
collection = chroma["collection"]
titles, queries = questions()["titles"][:3000], questions()["queries"]
collection.add(ids=[str(row) for row in range(3000)], documents=titles)
assert collection.count() == 3000

lance = recipe("LanceDB")
function = lance["towers"]
embeds(
    "LanceDB",
    lambda texts: [function.compute_query_embeddings(t)[0] for t in texts],
    function.generate_embeddings,
)
table = lance["table"]
table.add([{"text": title} for title in titles])

# Both stores find the title that is nearest by our own vectors.
for row, query in enumerate(queries[:20]):
    best = (expected()[1][:3000] @ expected()[0][row]).argmax()
    found = collection.query(query_texts=[query], n_results=1)
    assert found["documents"] == [[titles[best]]]
    (hit,) = table.search(query).metric("cosine").limit(1).to_list()
    assert hit["text"] == titles[best]
