"""Documents with a KeyVec: exported, encoded, indexed, searched, served."""

import json
from pathlib import Path

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.serving import PredictionServer, SavedRetriever
from keras_lstm_dssm.tools import encode, export, index, query, search
from tests.models.small_keyvec import DOCUMENTS as SENTENCES
from tests.models.small_keyvec import small_keyvec
from tests.tools.conftest import succeed

# The first has an empty sentence, which is left out; the last one that the
# graph splits in two.
WRITTEN = [*SENTENCES, ["Drill the wood. Of glue", "The lamp"]]
DOCUMENTS = [list(filter(None, sentences)) for sentences in WRITTEN]
IDS = [f"d{number}" for number in range(len(WRITTEN))]
pytestmark = pytest.mark.usefixtures("remembered_graphs")


@pytest.fixture(scope="module")
def model() -> dssm.KeyVec:
    return small_keyvec()


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory) -> Path:
    """Writes documents, the run of a KeyVec, and its exported models."""
    path = tmp_path_factory.mktemp("documents")
    lines = [
        json.dumps({"_id": key, "sentences": sentences})
        for key, sentences in zip(IDS, WRITTEN, strict=True)
    ]
    (path / "documents.jsonl").write_text("\n".join(lines))
    run = RunFolder(path / "run")
    run.create({}, model)
    run.save(model, run.model)
    succeed(export, run=run.path, documents=path, output=path / "models")
    return path


def unit_vectors(model: dssm.KeyVec, documents: list) -> np.ndarray:
    vectors = model.encode(documents)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_documents_are_encoded_and_indexed(model, folder, tmp_path):
    """Encodes a folder of documents, and a file with a text on each line."""
    vectors, ids = tmp_path / "v.npy", tmp_path / "v.ids"
    saved = folder / "models" / "keyvec"
    succeed(encode, saved_model=saved, input=folder, output=vectors, ids=ids)
    last = ["Drill the wood.", "Of glue", "The lamp"]
    expected = unit_vectors(model, [*DOCUMENTS[:-1], last])
    np.testing.assert_allclose(np.load(vectors), expected, atol=1e-6)
    assert ids.read_text().splitlines() == IDS
    lines, queries = tmp_path / "lines.txt", tmp_path / "q.npy"
    texts = ["Wood", "The glue of wood. Wood glue", ""]
    lines.write_text("\n".join(texts) + "\n")
    succeed(encode, saved_model=saved, input=lines, output=queries)
    found = np.load(queries)
    np.testing.assert_allclose(found, unit_vectors(model, texts), atol=1e-6)
    faiss = pytest.importorskip("faiss")
    built = tmp_path / "v.faiss"
    succeed(
        index, vectors=vectors, queries=queries, factory="Flat", output=built
    )
    _, rows = faiss.read_index(str(built)).search(found[:2], 1)
    assert rows[:, 0].tolist() == [1, 2]


def test_queries_find_documents(model, folder, tmp_path, capsys):
    texts = ["The glue of wood. Wood glue", "Wood"]
    models = folder / "models"
    capsys.readouterr()
    succeed(search, *texts, models=models, k=2)
    printed = capsys.readouterr().out
    hits = [line.split() for line in printed.splitlines()]
    assert [hits[1][1:], hits[4][1:]] == [["1.0000", "d2"], ["1.0000", "d1"]]
    # Documents are encoded as they are given, without splitting again.
    (found,) = SavedRetriever(models / "retriever").search(["Wood"], k=5)
    cosines = unit_vectors(model, ["Wood", *DOCUMENTS])
    scores = dict(zip(IDS, cosines[1:] @ cosines[0], strict=True))
    split = unit_vectors(model, [". ".join(DOCUMENTS[-1])])[0] @ cosines[0]
    assert abs(scores["d4"] - split) > 1e-4
    assert dict(found) == pytest.approx(scores, abs=1e-6)
    with PredictionServer(models, port=0) as server:
        flags: dict[str, object] = {"server": server.address, "timeout": 60}
        succeed(query, *texts, **flags, k=2)
        assert capsys.readouterr().out == printed
        flags["model"] = "keyvec"
        succeed(query, "Wood", **flags, vectors=True)
        assert len(capsys.readouterr().out.splitlines()[1].split()) == 5
        answer = tmp_path / "keys.json"
        succeed(query, texts[0], **flags, k=1, json=answer)
    ((sentence, p),) = model.key_sentences(texts[0], 1)
    ((word, _),) = model.key_words(texts[0], 1)
    printed = f"{texts[0]}\n   1   {p:.4f}  {sentence}\n      {word}\n"
    assert capsys.readouterr().out == printed
    assert json.loads(answer.read_text()) == {
        "documents": [
            {
                "document": texts[0],
                "sentences": [
                    {
                        "sentence": sentence,
                        "probability": pytest.approx(p, abs=1e-6),
                    }
                ],
                "words": [word],
            }
        ]
    }
