"""Makes a larger dev split, from documents of train and their clicks.

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
    """Copies a folder of documents, with documents of train moved to dev.

    Prints how many documents were moved, and how many queries they have.
    """
    folder = DocumentFolder(papers)
    clicks: defaultdict[str, list[str]] = defaultdict(list)
    for query, title in ClickLog(str(Path(papers, "clicks.train.tsv.gz"))):
        clicks[title].append(query)
    titles = Counter(document.title for document in folder)
    candidates = {
        document.id: document.title
        for document in folder.of("train")
        if document.title in clicks and titles[document.title] == 1
    }
    by_hash = sorted(
        candidates, key=lambda id_: hashlib.md5(id_.encode()).digest()
    )
    title_of = {id_: candidates[id_] for id_ in by_hash[:count]}
    clicked: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for id_, title in title_of.items():
        for query in clicks[title]:
            clicked[query][id_] = 1
    held_queries = {f"held{n}": query for n, query in enumerate(clicked)}
    former_dev = folder.qrels("dev")
    splits = {document.id: "test" for document in folder.of("dev")}
    splits |= dict.fromkeys(title_of, "dev")
    write_documents(
        held,
        (
            document._replace(split=splits.get(document.id, "train"))
            for document in folder
            if document.split != "test"
        ),
        held_queries | {id_: folder.queries[id_] for id_ in former_dev},
        {
            "dev": {id_: clicked[text] for id_, text in held_queries.items()},
            "test": former_dev,
        },
    )
    print(
        f"{len(title_of)} of {len(candidates)} documents,"
        f" {len(held_queries)} queries"
    )


if __name__ == "__main__":
    hold_out(*sys.argv[1:3], *map(int, sys.argv[3:]))
