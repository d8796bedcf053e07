"""lstm-dssm-export, -search and -encode as a user runs them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data.sources import training_queries
from keras_lstm_dssm.export.bulk import encode as bulk_encode
from keras_lstm_dssm.export.bulk.encode import PartResult
from keras_lstm_dssm.export.bulk.parts import EncodedParts
from keras_lstm_dssm.serving import PredictionServer, SavedRetriever
from keras_lstm_dssm.serving.saved_models import SavedEncoder
from keras_lstm_dssm.tools import encode, export, search
from keras_lstm_dssm.version import __version__
from tests.models.small_keyvec import DOCUMENTS as SENTENCES
from tests.models.small_keyvec import small_keyvec
from tests.tools.conftest import TITLES, results_of, saved_run, succeed

CODES = "vectors/codes/.ATTRIBUTES/VARIABLE_VALUE"
"""The vectors of an int8 retriever among its variables."""


def test_one_file_is_searched_without_a_folder_of_models(
    trained_run, models, titles, tmp_path, capsys
):
    file = tmp_path / "shop.safetensors"
    report = results_of(
        export, tmp_path / "report.json", run=trained_run, documents=titles,
        portable=file, weights="float32",
    )  # fmt: skip
    assert f"wrote {file}: " in capsys.readouterr().out
    assert report["bytes"] == file.stat().st_size
    printed, texts = [], ("wood glue", "hex bolt")
    for folder in (models, file):
        succeed(search, *texts, models=folder, k=2, json=tmp_path / "hits.json")
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] and "t2" in printed[0]
    found = json.loads((tmp_path / "hits.json").read_text())["queries"]
    assert [of_query["query"] for of_query in found] == [*texts]
    assert [of_query["hits"][0]["id"] for of_query in found] == ["t2", "t1"]
    assert {len(of_query["hits"]) for of_query in found} == {2}


@pytest.mark.parametrize(("data", "expected"), [
    ("{0}/clicks-*.tsv", ["red bolt", "red bolt", "glue"]),
    ("{0}/clicks-2.tsv,{0}/clicks-1.tsv", ["glue", "red bolt", "red bolt"]),
    ("{0}/gone.tsv", []), ("", []), (None, []),
])  # fmt: skip
def test_training_queries_that_are_at_hand(tmp_path, data, expected):
    clicks = "red bolt\tbolt\nred bolt\tnut\nbad\n", "glue\tglue\n"
    for number, line in enumerate(clicks, 1):
        (tmp_path / f"clicks-{number}.tsv").write_text(line)
    config = {"data": data and data.format(tmp_path), "max_bad_lines": 1}
    assert training_queries(config) == expected


def test_bm25_alone_is_a_file_whose_hits_are_explained(
    titles, tmp_path, capsys, refused
):
    file, tagged = tmp_path / "first_day.safetensors", tmp_path / "tagged.tsv"
    lines = titles.read_text().splitlines()
    tagged.write_text("".join(f"{line}\tin:{line[:2]}\n" for line in lines))
    succeed(export, hybrid=True, documents=tagged, portable=file)
    printed = capsys.readouterr().out
    assert "words 0 (no such part), bm25 4.9, numbers 0.7" in printed
    flags = {"models": file, "k": 1, "json": tmp_path / "hits.json"}
    succeed(search, "wood glue", explain=True, **flags)
    lines = capsys.readouterr().out.splitlines()
    rank, score, *shown = lines[1].split()
    assert (rank, *shown[:2]) == ("1", "t2", "interior")
    assert 0.3 < float(score) < 0.7  # both words are found, no match is weak
    assert lines[2].strip().startswith("bm25 4.")
    assert lines[2].endswith(", base -4.40")
    (found,) = json.loads((tmp_path / "hits.json").read_text())["queries"]
    parts = found["hits"][0]["parts"]
    assert sum(parts.values()) == pytest.approx(
        np.log(float(score) / (1 - float(score))), abs=0.02
    )
    assert found["hits"][0]["words"]["bm25"].keys() == {"wood", "glue"}
    for models in (file, tmp_path / "models"):
        if models != file:
            succeed(export, hybrid=True, documents=tagged, output=models)
        asked = ["search", f"--models={models}", "--explain", "wood glue"]
        capsys.readouterr()
        assert search.program.run([*asked, "--tags=in:t2"]) == 0
        assert capsys.readouterr().out.splitlines() == lines
        refused(
            search.program.run([*asked, "--tags=in:t22"]),
            "found the tag 'in:t22', which no document has: give another, such"
            " as in:t2",
        )


def test_the_card_follows_an_export_of_other_titles(
    trained_run, titles, tmp_path, refused
):
    """Of retrievers with vectors of int8, of two titles for a query.

    The second export changes more ids than `--yes` is needed for.
    """
    folder, fewer = tmp_path / "models", tmp_path / "fewer.txt"
    fewer.write_text("t1\thex bolt\nt9\tdesk lamp\n")
    given = {"vectors": "int8", "max_k": 2, "output": folder}
    for version, documents, count in ((1, titles, 3), (2, fewer, 2)):
        if version == 2:
            words = [f"--{name}={value}" for name, value in given.items()]
            words += [f"--run={trained_run}", f"--documents={fewer}"]
            code = export.program.run(["export", *words])
            printed = refused(
                code,
                "retriever/1: found 2 of its 3 ids removed and 1 added,"
                " expected changes of 20% at most: check the documents, or give"
                " --yes",
            )
            assert "2 documents, such as\n  t1  hex bolt\n" in printed
            assert not (folder / "retriever/2").exists()
            given["yes"] = True
        succeed(export, run=trained_run, documents=documents, **given)
        card = (folder / "CARD.md").read_text()
        (row,) = [r for r in card.splitlines() if r.startswith("| `retriever`")]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert (cells[1], cells[3]) == (str(version), str(count))
        assert cells[4] == trained_run.name
        assert card.count(f"| `query_encoder` | {version} |") == 1
        variables = folder / "retriever" / str(version) / "variables/variables"
        shapes = tf.train.load_checkpoint(str(variables))
        assert shapes.get_tensor(CODES).dtype == np.int8
        (hits,) = SavedRetriever(folder / "retriever").search(["bolt"], 5)
        assert len(hits) == 2


def test_each_line_has_the_vector_that_the_encoder_gives(
    models, trained_run, tmp_path
):
    lines, vectors = tmp_path / "texts.txt", tmp_path / "vectors.npy"
    expected = dssm.load_run(trained_run).document_encoder.encode
    for texts in (["wood glue", "", "中文", "a " * 300, " "], []):
        lines.write_text("".join(f"{text}\n" for text in texts))
        saved = models / "document_encoder"
        succeed(encode, saved_model=saved, input=lines, output=vectors)
        found = np.load(vectors)
        assert found.shape == (len(texts), 32)
        np.testing.assert_allclose(found, expected(texts), atol=1e-6)


def test_a_data_folder_is_encoded_by_the_fields_of_the_run(models, tmp_path):
    shop, vectors = tmp_path / "SHOP", tmp_path / "v.npy"
    catalogue = tmp_path / "c.csv"
    catalogue.write_text("id,title,brand\na,wood glue,Acme\nb,lamp,Zinc\n")
    dssm.prepare(shop, catalogue=catalogue, text=("brand",))
    config = {"version": __version__, "recipe": {"fields": "title:1"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    saved = models / "document_encoder"
    given = {"saved_model": saved, "input": shop, "output": vectors}
    for run, texts in (
        ({"run": tmp_path}, ["wood glue", "lamp"]),
        ({}, ["wood glue Acme", "lamp Zinc"]),
    ):
        succeed(encode, **given, **run)
        expected = SavedEncoder(saved).encode(texts)
        np.testing.assert_allclose(np.load(vectors), expected, atol=1e-6)


def test_parts_become_a_retriever(
    models, trained_run, other_run, tmp_path, capsys, refused
):
    """Titles are encoded by two processes, in parts of eight."""
    pytest.importorskip("pyarrow")
    words = TITLES.split("\t")[1].split()
    titles = [f"{words[n % 5]} no {n}" for n in range(30)]
    lines = [
        f"t{n}\t{title}" + "\tsteel,in stock" * (n % 3 == 0)
        for n, title in enumerate(titles)
    ]
    for name, some in (("a", lines[:20]), ("b", lines[20:])):
        (tmp_path / f"titles-{name}.tsv").write_text("\n".join(some))
    parts = tmp_path / "PARTS"
    given = {
        "saved_model": models / "document_encoder", "output": parts,
        "input": tmp_path / "titles-*.tsv", "rows_per_file": 8,
        "format": "parquet",
    }  # fmt: skip
    for shard in ("1/2", "0/2"):
        succeed(encode, **given, shard=shard)
    assert "part-00001-00000: 8 titles, " in capsys.readouterr().out
    again = results_of(encode, tmp_path / "again.json", **given)
    assert (again["parts"], again["complete_already"]) == (5, 5)
    vectors = EncodedParts(parts).read().vectors
    expected = dssm.load_run(trained_run).document_encoder.encode(titles)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)

    retrievers = []
    for documents in (parts, tmp_path / "titles-*.tsv"):
        output = tmp_path / f"models-{len(retrievers)}"
        succeed(export, run=trained_run, documents=documents, output=output)
        retrievers.append(SavedRetriever(output / "retriever"))
    for options, count in (({}, 30), ({"tags": ["in stock"]}, 10)):
        hits, others = (
            {
                (hit.id, hit.title): hit.score
                for hit in retriever.search(["wood glue"], 30, **options)[0]
            }
            for retriever in retrievers
        )
        assert len(hits) == count
        assert hits == pytest.approx(others, abs=1e-6)
    for run, output, message in (
        (other_run, "output=new", "encode the titles with the document_enc"),
        (trained_run, "portable=x.safetensors", "name the file"),
    ):
        words = [f"--run={run}", f"--documents={parts}", f"--{output}"]
        refused(export.program.run(["export", *words]), message)


@pytest.mark.parametrize("choice", [{}, {"format": "npy"}])
def test_parts_of_workers_are_parquet_unless_a_format_is_chosen(
    choice, models, titles, tmp_path, monkeypatch, capsys
):
    """What Ray's actors are told to do, and what is reported of it."""
    pytest.importorskip("pyarrow")
    given: list[Any] = []

    def encode_with_ray(*arguments: Any) -> list[PartResult]:
        given.extend(arguments)
        return [
            PartResult("part-a", 20, 0.5, was_complete=False, last=True),
            PartResult("part-b", 10, 0.0, was_complete=True, last=True),
        ]

    monkeypatch.setattr(bulk_encode, "encode_with_ray", encode_with_ray)
    saved = models / "document_encoder"
    totals = results_of(
        encode, tmp_path / "results.json", saved_model=saved, input=titles,
        output=tmp_path / "PARTS", rows_per_file=8, workers=2,
        ray_address="auto", **choice,
    )  # fmt: skip
    load, job, *others = given
    assert (load.args, *others) == ((str(saved),), 2, "auto")
    kind = choice.get("format", "parquet")
    assert job[:4] == (tmp_path / "PARTS", [str(titles)], 8, kind)
    printed = capsys.readouterr().out
    assert "part-a: 20 titles, 40 titles/s\n" in printed
    assert "part-b: 10 titles, complete already\n" in printed
    assert [*totals.values()][:3] == [2, 1, 30]


# The first has an empty sentence, which is left out; the last one that the
# graph splits in two.
WRITTEN = [*SENTENCES, ["Drill the wood. Of glue", "The lamp"]]
DOCUMENTS = [list(filter(None, sentences)) for sentences in WRITTEN]
IDS = [f"d{number}" for number in range(len(WRITTEN))]


@pytest.fixture(scope="module")
def model() -> dssm.KeyVec:
    return small_keyvec()


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory) -> Path:
    """Writes documents, the run of a KeyVec, and its exported models."""
    path = tmp_path_factory.mktemp("documents")
    (path / "documents.jsonl").write_text(
        "\n".join(
            json.dumps({"_id": key, "sentences": sentences})
            for key, sentences in zip(IDS, WRITTEN, strict=True)
        )
    )
    run = saved_run(path / "run", model)
    succeed(export, run=run, documents=path, output=path / "models")
    return path


def unit_vectors(model: dssm.KeyVec, documents: list) -> np.ndarray:
    vectors = model.encode(documents)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_documents_are_encoded(model, folder, tmp_path):
    """Encodes a folder of documents, and a file with a text on each line."""
    vectors, ids = tmp_path / "v.npy", tmp_path / "v.ids"
    given = {"saved_model": folder / "models" / "keyvec", "output": vectors}
    succeed(encode, **given, input=folder, ids=ids)
    last = ["Drill the wood.", "Of glue", "The lamp"]
    expected = unit_vectors(model, [*DOCUMENTS[:-1], last])
    np.testing.assert_allclose(np.load(vectors), expected, atol=1e-6)
    assert ids.read_text().splitlines() == IDS
    lines, texts = tmp_path / "lines.txt", ["Wood", "The glue. Wood glue", ""]
    lines.write_text("\n".join(texts) + "\n")
    succeed(encode, **given, input=lines)
    expected = unit_vectors(model, texts)
    np.testing.assert_allclose(np.load(vectors), expected, atol=1e-6)


def test_queries_find_documents(model, folder, tmp_path, capsys):
    texts = ["The glue of wood. Wood glue", "Wood"]
    models = folder / "models"
    capsys.readouterr()
    succeed(search, *texts, models=models, k=2)
    printed = capsys.readouterr().out
    hits = [line.split() for line in printed.splitlines()]
    assert hits[1][1:] == ["1.0000", "d2", "The", "glue", "of", "wood"]
    assert hits[4][1:] == ["1.0000", "d1", "Wood"]
    # Documents are encoded as they are given, without splitting again.
    (found,) = SavedRetriever(models / "retriever").search(["Wood"], k=5)
    cosines = unit_vectors(model, ["Wood", *DOCUMENTS])
    scores = dict(zip(IDS, cosines[1:] @ cosines[0], strict=True))
    split = unit_vectors(model, [". ".join(DOCUMENTS[-1])])[0] @ cosines[0]
    assert abs(scores["d4"] - split) > 1e-4
    found_scores = {hit.id: hit.score for hit in found}
    assert found_scores == pytest.approx(scores, abs=1e-6)
    with PredictionServer(models, port=0) as server:
        flags = {"server": server.address, "timeout": 60}
        succeed(search, *texts, **flags, k=2)
        assert capsys.readouterr().out == printed
        flags["model"] = "keyvec"
        succeed(search, "Wood", **flags, show="vectors")
        assert len(capsys.readouterr().out.splitlines()[1].split()) == 5
        answer = tmp_path / "keys.json"
        succeed(search, texts[0], **flags, k=1, json=answer)
    ((sentence, p),) = model.key_sentences(texts[0], 1)
    ((word, _),) = model.key_words(texts[0], 1)
    printed = f"{texts[0]}\n   1   {p:.4f}  {sentence}\n      {word}\n"
    assert capsys.readouterr().out == printed
    key = {"sentence": sentence, "probability": pytest.approx(p, abs=1e-6)}
    assert json.loads(answer.read_text()) == {
        "documents": [
            {"document": texts[0], "sentences": [key], "words": [word]}
        ]
    }
