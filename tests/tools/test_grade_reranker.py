"""grade_reranker: the features of a pair, and learning from grades."""

import json
import pathlib

import numpy as np
import pytest

from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.tools import grade_reranker
from keras_lstm_dssm.tools.grade_reranker import GradeReranker, WordOverlap

TITLES = ["steel hex bolt 3", "wood glue", "steel lamp"]


def test_what_it_sees_of_a_pair() -> None:
    found = WordOverlap(TITLES)("hex bolts 3", "steel hex bolt 3")
    bm25, weight, share, asked, words, miss, hit, *rest = found
    idf = np.log1p(2.5 / 1.5)  # each of the words is in one title of three
    long = 4 / (8 / 3)
    assert bm25 == pytest.approx(3 * idf / (1 + 0.9 * (0.1 + 0.9 * long)))
    assert (weight, share, asked, words, miss) == (1, 1, 3, 4, 0)
    assert hit == pytest.approx(idf)
    ours, theirs, alike, worst, numbers, of, first, last, end = rest
    # #he hex ex# #bo bol olt lts ts# #3#: seven of nine are in the title.
    assert ours == pytest.approx(7 / 9)
    assert theirs == pytest.approx(7 / 13)
    # Of bolts and bolt, 3 of 6 trigrams are in both.
    assert (alike, worst) == pytest.approx(((1 + 0.5 + 1) / 3, 0.5))
    assert (numbers, of, first, last, end) == (1, 1, 1, 3, True)
    missing = WordOverlap(TITLES)("saw", "wood glue")
    assert missing[:3] == [0, 0, 0] and missing[-3:] == [-1, -1, 0]
    assert np.isfinite(WordOverlap(TITLES)("", "")).all()


def test_it_learns_what_the_grades_say() -> None:
    """In the training data, a title that shares a word with its query is bad.

    So a title that shares one is ranked below a title that shares none.
    """
    overlap = WordOverlap(TITLES)
    pairs = [("glue", TITLES[1], 0), ("glue", TITLES[2], 3)] * 30
    system = GradeReranker(overlap, pairs)
    documents = dict(zip("abc", TITLES, strict=True))
    run = system.rerank({"q": "lamp"}, {"q": ["b", "c"]}, documents)
    assert list(run["q"]) == ["b", "c"]
    with pytest.raises(TypeError, match="only reranks"):
        system.retrieve({"q": "lamp"}, documents, 2)


def test_on_a_collection(
    collection_folder: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    qrels = collection_folder / "qrels"
    folder = tmp_path / "data"
    folder.mkdir()
    for path in collection_folder.iterdir():
        if path != qrels:
            (folder / path.name).symlink_to(path)
    (folder / "qrels").mkdir()
    for split in ("train", "dev"):
        (folder / f"qrels/{split}.tsv").write_text(
            (qrels / "dev.tsv").read_text()
        )
    out = tmp_path / "out.json"
    flags = ["grade_reranker", f"--data={folder}", f"--json={out}"]
    assert grade_reranker.run(flags) == 0
    collection = open_collection(str(folder))
    task = Task.from_collection(collection, "dev", "rerank")
    system = GradeReranker(
        WordOverlap(list(collection.documents.values())),
        [
            (collection.queries[query], collection.documents[document], grade)
            for query, grades in collection.qrels("train").items()
            for document, grade in grades.items()
        ],
    )
    assert json.loads(out.read_text()) == task.evaluate(task.run(system))
