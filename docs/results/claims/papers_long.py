"""Joins the citing sentences of a paper to one long query.

    python docs/results/claims/papers_long.py PAPERS FOLDER

PAPERS is the folder of the collection `papers`; FOLDER gets the same documents
and, for each paper of dev and test, one query of all sentences that cite it, in
the order of the file. The paper is its only relevant document.
"""

import gzip
import json
import shutil
import sys
from collections import defaultdict
from pathlib import Path

SPLITS = ("dev", "test")


def join(source: Path, folder: Path) -> None:
    """Writes the folder."""
    (folder / "qrels").mkdir(parents=True)
    for name in ("documents.jsonl.gz", "clicks.train.tsv.gz"):
        shutil.copyfile(source / name, folder / name)
    with gzip.open(source / "queries.jsonl.gz", "rt", encoding="utf-8") as file:
        texts = {row["_id"]: row["text"] for row in map(json.loads, file)}
    with gzip.open(folder / "queries.jsonl.gz", "wt", encoding="utf-8") as file:
        for split in SPLITS:
            header, *judgements = (
                (source / "qrels" / f"{split}.tsv").read_text().splitlines()
            )
            sentences = defaultdict(list)
            for query, paper, _ in map(str.split, judgements):
                sentences[paper].append(texts[query])
            rows = [header]
            for paper, of_paper in sentences.items():
                query = {"_id": f"to-{paper}"}
                query["text"] = " ".join(of_paper)
                file.write(json.dumps(query) + "\n")
                rows.append(f"{query['_id']}\t{paper}\t1")
            qrels = "\n".join(rows) + "\n"
            (folder / "qrels" / f"{split}.tsv").write_text(qrels)


if __name__ == "__main__":
    join(*map(Path, sys.argv[1:]))
