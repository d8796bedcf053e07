"""Titles in parts, from lstm-dssm-encode to an index and to a retriever."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export.bulk import encode as bulk_encode
from keras_lstm_dssm.export.bulk.encode import PartResult
from keras_lstm_dssm.export.bulk.parts import EncodedParts
from keras_lstm_dssm.serving import SavedRetriever
from keras_lstm_dssm.tools import encode, export, index
from tests.conftest import TOPICS
from tests.tools.conftest import succeed

TITLES = {
    f"t{number}": f"{title} no {number}"
    for number, (_, title) in enumerate(list(TOPICS.values()) * 5)
}
TAGS = "\tsteel,in stock"
pytestmark = pytest.mark.usefixtures("remembered_graphs")


@pytest.fixture(scope="module")
def folder(trained_run, tmp_path_factory) -> Path:
    """Writes exported encoders and two files of titles, a third with tags."""
    folder = tmp_path_factory.mktemp("parts")
    succeed(export, run=trained_run, output=folder / "models")
    lines = [
        f"{key}\t{title}{'' if row % 3 else TAGS}\n"
        for row, (key, title) in enumerate(TITLES.items())
    ]
    (folder / "titles.tsv").write_text("".join(lines))
    for name, some in (("a", lines[:20]), ("b", lines[20:])):
        path = folder / f"titles-{name}.tsv.gz"
        path.write_bytes(gzip.compress("".join(some).encode()))
    return folder


def encoded(folder: Path, parts: Path, **flags: object) -> None:
    succeed(
        encode, saved_model=folder / "models" / "document_encoder",
        input=f"{folder}/titles-*.tsv.gz", output=parts, rows_per_file=8,
        **flags,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["npy", "parquet"])
def test_parts_become_an_index_and_a_retriever(
    folder, trained_run, tmp_path, kind, capsys
):
    faiss = pytest.importorskip("faiss")
    parts = tmp_path / "PARTS"
    for shard in ("1/2", "0/2"):
        encoded(folder, parts, shard=shard, format=kind)
    assert "part-00001-00000: 8 titles, " in capsys.readouterr().out
    encoded(folder, parts, format=kind, json=tmp_path / "again.json")
    again = json.loads((tmp_path / "again.json").read_text())
    assert (again["parts"], again["complete_already"]) == (5, 5)
    expected = dssm.load_run(trained_run).document_encoder.encode(
        list(TITLES.values())
    )
    rows = EncodedParts(parts).read()
    np.testing.assert_allclose(rows.vectors, expected, atol=1e-6)
    built = tmp_path / "titles.faiss"
    np.save(tmp_path / "queries.npy", rows.vectors[3:5])
    succeed(
        index, vectors=parts, output=built, factory="Flat",
        queries=tmp_path / "queries.npy", json=tmp_path / "index.json",
    )  # fmt: skip
    assert json.loads((tmp_path / "index.json").read_text())["recall@10"] == 1
    assert (tmp_path / "titles.faiss.ids").read_text().split() == [*TITLES]
    tags = (tmp_path / "titles.faiss.tags").read_text().split("\n")
    assert tags[:4] == ["steel,in stock", "", "", "steel,in stock"]
    found = faiss.read_index(str(built)).search(rows.vectors[3:5], 1)[1]
    assert found[:, 0].tolist() == [3, 4]
    if kind == "parquet":
        return
    models = tmp_path / "models"
    succeed(export, run=trained_run, documents=parts, output=models)
    of_parts = SavedRetriever(models / "retriever")
    succeed(
        export, run=trained_run, documents=folder / "titles.tsv",
        output=tmp_path / "full",
    )  # fmt: skip
    full = SavedRetriever(tmp_path / "full" / "retriever")
    for options, count in (({}, 30), ({"tags": ["in stock"]}, 10)):
        hits, others = (
            retriever.search(["wood glue"], 30, **options)[0]
            for retriever in (of_parts, full)
        )
        assert len(hits) == count
        for hit, other in zip(hits, others, strict=True):
            assert hit.id == other.id
            assert hit.score == pytest.approx(other.score, abs=1e-6)


@pytest.mark.parametrize("kind", [None, "npy"])
def test_parts_of_workers_are_parquet_unless_a_format_is_chosen(
    kind, folder, tmp_path, monkeypatch, capsys
):
    """What Ray's actors are told to do, and what is reported of it."""
    pytest.importorskip("pyarrow")
    arguments_of_ray: list[Any] = []

    def encode_with_ray(*arguments: Any) -> list[PartResult]:
        arguments_of_ray.extend(arguments)
        return [
            PartResult("part-a", 20, 0.5, was_complete=False, last=True),
            PartResult("part-b", 10, 0.0, was_complete=True, last=True),
        ]

    monkeypatch.setattr(bulk_encode, "encode_with_ray", encode_with_ray)
    choice = {} if kind is None else {"format": kind}
    results = tmp_path / "results.json"
    encoded(
        folder, tmp_path / "PARTS", workers=2, ray_address="auto",
        json=results, **choice,
    )  # fmt: skip
    load, job, workers, address = arguments_of_ray
    assert load.args == (str(folder / "models" / "document_encoder"),)
    assert (workers, address) == (2, "auto")
    assert job.folder == tmp_path / "PARTS"
    assert [Path(file).name for file in job.files] == [
        "titles-a.tsv.gz",
        "titles-b.tsv.gz",
    ]
    assert (job.lines, job.kind) == (8, kind or "parquet")
    printed = capsys.readouterr().out
    assert "part-a: 20 titles, 40 titles/s\n" in printed
    assert "part-b: 10 titles, complete already\n" in printed
    totals = json.loads(results.read_text())
    assert (totals["parts"], totals["complete_already"]) == (2, 1)
    assert totals["rows"] == 30


def test_what_does_not_fit(folder, tmp_path, refused, trained_run):
    parts = tmp_path / "PARTS"
    encoded(folder, parts, shard="0/2")
    commands = [
        (index, [f"--vectors={parts}", f"--output={tmp_path}/i"],
         "part-00000-00001 is missing; expected all parts"),
        (encode, ["--shard=2/2", *_flags(folder, "titles-*", parts)],
         "shard is '2/2': expected a number, a slash"),
        (encode, ["--rows_per_file=9", *_flags(folder, "titles-*", parts)],
         "found a part with another --rows_per_file, 8, expected 9"),
        (encode, ["--shard=0/1", f"--ids={tmp_path}/ids",
                  *_flags(folder, "titles-*", parts)], "--ids is a flag for"),
        (encode, ["--ray_address=auto", "--shard=0/1",
                  *_flags(folder, "titles-*", parts)],
         "--ray_address is used with --workers only"),
        (encode, ["--workers=2", "--shard=0/1",
                  *_flags(folder, "titles-*", parts)],
         "--shard and --workers are both set: expected one of them"),
        (encode, ["--shard=0/1",
                  *_flags(folder, "titles-*", tmp_path / "new.npy")],
         "new.npy: expected a folder for parts: leave out the suffix"),
        (encode, ["--shard=0/1", *_flags(folder, "no-*", parts)],
         "no such file, expected titles"),
    ]  # fmt: skip
    for program, flags, message in commands:
        refused(program.run(["program", *flags]), message)
    encoded(folder, parts, shard="1/2")
    other = tmp_path / "run"
    recipe = dssm.PRESETS["lstm_32"].replace(epochs=1, batch_size=16)
    dssm.train(list(TOPICS.values()), recipe, seed=5, output=other, verbose=0)
    code = export.run(
        ["export", f"--run={other}", f"--documents={parts}",
         f"--output={tmp_path}/models"]
    )  # fmt: skip
    refused(code, "encode them with the document_encoder of this run")


def _flags(folder: Path, pattern: str, parts: Path) -> list[str]:
    return [
        f"--saved_model={folder}/models/document_encoder",
        f"--input={folder}/{pattern}", f"--output={parts}",
    ]  # fmt: skip
