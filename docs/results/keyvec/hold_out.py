"""Holds documents of train out as dev, with the queries that clicked them.

    cd docs/results/keyvec
    python hold_out.py PAPERS HELD [155]

PAPERS is a folder of documents with `clicks.train.tsv.gz`, lines of a query, a
tab, and the title of a document of train. HELD becomes a folder with the same
documents, but for those of test: 155 documents of train with clicks, the first
ones by a hash of their ids, are dev, and the former dev is test. So choices
that dev is too small for are made without a look at the documents of test.
"""

import hashlib
import sys
from collections import Counter, defaultdict
from pathlib import Path

from keras_lstm_dssm.data import ClickLog, DocumentFolder, write_documents


def hold_out(papers: str, held: str, count: int = 155) -> None:
    """Writes the folder, and prints the numbers of documents and queries.

    A query that clicked several documents is a query of the first of them.

    Args:
        papers: The folder of documents, with clicks.
        held: The folder to write.
        count: The number of documents to hold out.

    Raises:
        InputError: The documents or clicks are missing or malformed.
    """
    folder = DocumentFolder(papers)
    clicks: defaultdict[str, list[str]] = defaultdict(list)
    for query, title in ClickLog(str(Path(papers, "clicks.train.tsv.gz"))):
        clicks[title].append(query)
    titles = Counter(one.title for one in folder)
    candidates = [
        (hashlib.md5(one.id.encode()).hexdigest(), one.id, one.title)
        for one in folder.of("train")
        if one.title in clicks and titles[one.title] == 1
    ]
    chosen = {id_: title for _, id_, title in sorted(candidates)[:count]}
    wanted: dict[str, str] = {}
    for id_, title in chosen.items():
        for query in clicks[title]:
            wanted.setdefault(query, id_)
    new = {f"held{number}": query for number, query in enumerate(wanted)}
    dev = folder.qrels("dev")
    split = dict.fromkeys(chosen, "dev")
    write_documents(
        held,
        (
            one._replace(
                split="test"
                if one.split == "dev"
                else split.get(one.id, "train")
            )
            for one in folder
            if one.split != "test"
        ),
        new | {query: folder.queries[query] for query in dev},
        {"dev": {id_: {wanted[new[id_]]: 1} for id_ in new}, "test": dev},
    )
    print(f"{len(chosen)} of {len(candidates)} documents, {len(new)} queries")


if __name__ == "__main__":
    hold_out(*sys.argv[1:3], *map(int, sys.argv[3:]))
