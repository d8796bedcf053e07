"""Readers of files of other people: plain, bounded, one line if damaged."""

import gzip
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm import plain_files
from keras_lstm_dssm.analysis.hybrid import read_hybrid
from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.distillation.teacher_vectors import TeacherFolder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk.parts import (
    EncodedParts,
    PartInfo,
    PartRows,
    part_name,
    write_info,
    writing_part,
)
from keras_lstm_dssm.export.publish.models_config import read_models_config
from keras_lstm_dssm.export.publish.versions import (
    verify_manifest,
    write_manifest,
)
from keras_lstm_dssm.files import write_csv, write_json, write_json_gz
from keras_lstm_dssm.model_cards.record import read_facts
from keras_lstm_dssm.plain_files import (
    check_unpacked_size,
    open_gzip,
    read_json,
    read_json_gz,
)
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.training.tower_training import _read_given_texts
from keras_lstm_dssm.version import __version__

READERS: dict[str, Callable[[Path], Any]] = {
    "R/config.json": lambda f: RunFolder(f / "R").read_config(),
    "R/metrics.json": lambda f: RunFolder(f / "R").read_metrics(),
    "R/history.csv": lambda f: RunFolder(f / "R").read_history(),
    "R/model.keras": lambda f: RunFolder(f / "R").load_model(),
    "R/checkpoints/last.keras": lambda f: RunFolder(f / "R").load_checkpoint(),
    "R/card.json": lambda f: read_facts(f / "R"),
    "R/hybrid.json": lambda f: read_hybrid(f / "R"),
    "R/given_texts.json": lambda f: _read_given_texts(
        f / "R" / "given_texts.json"
    ),
    "R/hard_negatives.json.gz": lambda f: read_json_gz(
        f / "R" / "hard_negatives.json.gz", lambda value: value, "negatives"
    ),
    "T/teacher.json": lambda f: TeacherFolder(f / "T").read_settings(),
    "T/texts.jsonl.gz": lambda f: TeacherFolder(f / "T").read_texts(),
    "T/vectors/000000.npy": lambda f: TeacherFolder(f / "T").read_block(0, 2),
    "P/part-00000-00000.json": lambda f: EncodedParts(f / "P").read(),
    "P/part-00000-00000.npy": lambda f: EncodedParts(f / "P").read(),
    "P/part-00000-00000.ids": lambda f: EncodedParts(f / "P").read(),
    "P/part-00000-00000.hashes": lambda f: EncodedParts(f / "P").read(),
    "P/part-00000-00000.tags": lambda f: EncodedParts(f / "P").read(),
    "Q/part-00000-00000.json": lambda f: EncodedParts(f / "Q").read(),
    "Q/part-00000-00000.parquet": lambda f: EncodedParts(f / "Q").read(),
    "B/corpus.jsonl": lambda f: Collection(f / "B").documents,
    "B/queries.jsonl": lambda f: Collection(f / "B").queries,
    "B/qrels/test.tsv": lambda f: Collection(f / "B").qrels("test"),
    "M/models.config": lambda f: read_models_config(f / "M" / "models.config"),
    "M/MANIFEST.sha256": lambda f: verify_manifest(f / "M"),
}
"""A file of a folder -> what reads it, of the folder of all folders."""


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    """A folder of each kind, small and complete."""
    root = tmp_path_factory.mktemp("folders")
    run, teacher = root / "R", root / "T"
    (run / "checkpoints").mkdir(parents=True)
    towers = dssm.TwoTower(*(dssm.DSSMEncoder([4]) for _ in range(2)))
    towers.save(run / "model.keras")
    shutil.copy(run / "model.keras", run / "checkpoints" / "last.keras")
    write_json(run / "config.json", {"version": __version__, "data": "a.tsv"})
    write_json(run / "metrics.json", {"test": {"mrr": 0.5}})
    write_csv(run / "history.csv", [{"epoch": 1, "updates": 2, "loss": 0.5}])
    write_json(run / "card.json", {"exports": []})
    write_json(run / "hybrid.json", {"towers": 0.5, "bm25": 0.5})
    write_json(
        run / "given_texts.json", {"titles": ["a"], "judged": {"q": ["b"]}}
    )
    write_json_gz(run / "hard_negatives.json.gz", {"epoch": 1})
    (teacher / "vectors").mkdir(parents=True)
    files = TeacherFolder(teacher)
    files.write_texts(["hex bolt", "wood glue"])
    np.save(files.block(0), np.eye(2, dtype=np.float32))
    counts = {"texts": 2, "queries": 0, "titles": 2}
    write_json(files.settings, {**counts, "encoder": "x", "sha256": "0"})
    for name, kind in (("P", "npy"), ("Q", "parquet")):
        (root / name).mkdir()
        part = part_name(0, 0)
        with writing_part(root / name, part, kind, 4) as write:
            write(
                PartRows(
                    ["d1", "d2"],
                    np.eye(2, 4, dtype=np.float32),
                    np.arange(32, dtype=np.uint8).reshape(2, 16),
                    [["red"], []],
                )
            )
        info = PartInfo(kind, "t", 0, 1, 0, True, 9, 2, 4, "a", "b", 1)
        write_info(root / name, part, info)
    (root / "B" / "qrels").mkdir(parents=True)
    (root / "B" / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "hex bolt"}\n'
    )
    (root / "B" / "queries.jsonl").write_text('{"_id": "q", "text": "bolt"}\n')
    (root / "B" / "qrels" / "test.tsv").write_text("q\td1\t1\n")
    (root / "M").mkdir()
    (root / "M" / "models.config").write_text(
        'model_config_list { config { name: "a" base_path: "/a" } }\n'
    )
    write_manifest(root / "M")
    return root


@pytest.mark.parametrize("name", READERS)
def test_only_plain_files_of_a_folder_are_read(name, folders, tmp_path):
    READERS[name](folders)  # complete
    copy, secret = tmp_path / "copy", tmp_path / "secret"
    shutil.copytree(folders, copy)
    path = copy / name
    path.replace(secret)
    path.symlink_to(secret)
    if name.startswith("B/") or name == "M/MANIFEST.sha256":
        expected = "link"
    else:
        expected = "found a link to .*/secret, which is outside"
    with pytest.raises(InputError, match=expected):
        READERS[name](copy)
    path.unlink()
    os.mkfifo(path)  # reading it would never end
    with pytest.raises(InputError, match="expected"):
        READERS[name](copy)
    path.unlink()
    # A file without an end on the disk: a gap of 3 GB.
    with path.open("wb") as file:
        file.truncate(3 << 30)
    if name.startswith("B/"):
        return  # which are read line by line
    with pytest.raises(InputError) as error:
        READERS[name](copy)
    assert "\n" not in str(error.value)


def test_json_is_read_as_written(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"title": "\u00bd in. bolt", "grades": [1, 2]})
    assert read_json(path) == {"title": "\u00bd in. bolt", "grades": [1, 2]}
    path.write_bytes(b'{"title": "\xc2\xbd in."}')
    assert read_json(path) == {"title": "\u00bd in."}
    for damaged in (b"", b"{", b"[1]", b"\xff"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"a\.json: .* is damaged"):
            read_json(path)


def test_an_archive_that_unpacks_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(plain_files, "_UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "model.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("config.json", "metadata.json"):
            archive.writestr(name, b" " * (1 << 20))
    with pytest.raises(
        InputError,
        match="keras: found an archive of 2 KB that unpacks to 2,048 KB, exp",
    ):
        check_unpacked_size(path)
    with zipfile.ZipFile(path, "w") as archive:  # a large one, not packed
        archive.writestr("model.weights.h5", b" " * (1 << 22))
    check_unpacked_size(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("config.json", b" " * (1 << 20))  # a small one
    check_unpacked_size(path)


def test_a_gzip_file_that_unpacks_to_too_much(tmp_path, monkeypatch):
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress("é\n".encode() * (1 << 20)))
    with open_gzip(path) as file:
        assert len(list(file)) == 1 << 20
    monkeypatch.setattr(plain_files, "_UNPACKED_BYTES", 1 << 20)
    with (
        pytest.raises(InputError, match="unpacks to more than 1,024 KB, exp"),
        open_gzip(path) as file,
    ):
        file.read()
    path.write_bytes(gzip.compress(os.urandom(1 << 21)))  # a large one
    with open_gzip(path) as file:
        assert len(file.buffer.read()) == 1 << 21
