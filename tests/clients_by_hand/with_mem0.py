"""mem0: its recipe in docs/clients.md, and a search of its memories."""

import os
import tempfile

from common import embeds, expected, questions, recipe

os.chdir(tempfile.mkdtemp())  # the memories are files
found = recipe("mem0")
towers, memory = found["towers"], found["memory"]


def embed_titles(titles: list[str]) -> list[list[float]]:
    rows = []
    for start in range(0, len(titles), 2048):
        rows += towers.embed_batch(titles[start : start + 2048])
    return rows


embeds(
    "mem0",
    lambda texts: [towers.embed(text, "search") for text in texts],
    embed_titles,
)
rows = [relevant[0] for relevant in questions()["relevant"][:20]]
titles = [questions()["titles"][row] for row in rows]
for title in titles:
    memory.add(title, user_id="a", infer=False)
for row, query in enumerate(questions()["queries"][:20]):
    best = (expected()[1][rows] @ expected()[0][row]).argmax()
    found = memory.search(query, filters={"user_id": "a"}, threshold=0)
    assert found["results"][0]["memory"] == titles[best]
