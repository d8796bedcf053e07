"""Readers of files of other people: plain, bounded, one line if damaged."""

import gzip
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

import keras_lstm_dssm as dssm
from keras_lstm_dssm import plain_files
from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.documents import DocumentFolder
from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.data.teacher_folder import TeacherFolder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk.documents import Documents, read_documents
from keras_lstm_dssm.export.bulk.parts import (
    EncodedParts,
    PartInfo,
    PartRows,
    part_name,
    write_info,
    writing_part,
)
from keras_lstm_dssm.export.graphs.hybrid import describe_published
from keras_lstm_dssm.export.graphs.saved_module import signature_defs
from keras_lstm_dssm.export.portable import export_portable
from keras_lstm_dssm.export.publish.server_files import check_ids
from keras_lstm_dssm.export.publish.versions import (
    verify_manifest,
    write_manifest,
)
from keras_lstm_dssm.files import write_csv, write_json, write_json_gz
from keras_lstm_dssm.fingerprints import id_hashes
from keras_lstm_dssm.model_cards import (
    card_tables,
    export_facts,
    write_models_card,
)
from keras_lstm_dssm.model_folders import read_models_config
from keras_lstm_dssm.plain_files import (
    check_unpacked_size,
    open_gzip,
    read_json,
    read_json_gz,
    text_lines,
)
from keras_lstm_dssm.run_folder import RunFolder, config_of_run
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.document_targets import DocumentTargets, Target
from keras_lstm_dssm.training.initial_model import InitialModel
from keras_lstm_dssm.training.salience import SalienceCounts
from keras_lstm_dssm.training.scorer_training import read_lists
from keras_lstm_dssm.training.tower_training import _read_stored_texts
from keras_lstm_dssm.version import __version__
from lstm_dssm_client import LocalModel


def prepared(log: Path) -> Any:
    """Reads a log of clicks, with any number of bad lines."""
    return prepare(None, clicks=log, dev_percent=20, max_bad_percent=100)


READERS: dict[str, Callable[[Path], Any]] = {
    "R/config.json": lambda f: (
        InitialModel.recipe_of(f / "R"),
        config_of_run(run := RunFolder(f / "R"), run.read_config()),
    ),
    "R/metrics.json": lambda f: RunFolder(f / "R").read_metrics(),
    "R/history.csv": lambda f: RunFolder(f / "R").read_history(),
    "R/model.keras": lambda f: RunFolder(f / "R").load_model(),
    "R/checkpoints/last.keras": lambda f: RunFolder(f / "R").load_checkpoint(),
    "R/card.json": lambda f: (
        card_tables(f / "R"),
        export_facts(f / "R", "retriever", 1),
        write_models_card(f / "R", {"retriever": 2}, None),
    ),
    "R/hybrid.json": lambda f: RunFolder(f / "R").read_hybrid(),
    "R/given_texts.json": lambda f: _read_stored_texts(
        f / "R" / "given_texts.json"
    ),
    "R/hard_negatives.json.gz": lambda f: read_json_gz(
        f / "R" / "hard_negatives.json.gz", lambda value: value, "negatives"
    ),
    "R/mined_lists.json.gz": lambda f: read_lists(
        f / "R" / "mined_lists.json.gz", ClickLog(f / "R" / "clicks.tsv")
    ),
    "R/document_targets.json.gz": lambda f: DocumentTargets.from_file(
        f / "R" / "document_targets.json.gz"
    ),
    "T/teacher.json": lambda f: TeacherFolder(f / "T").read_settings(),
    "T/texts.jsonl.gz": lambda f: TeacherFolder(f / "T").read_texts(),
    "T/vectors/000000.npy": lambda f: TeacherFolder(f / "T").read_block(0, 2),
    "P/part-00000-00000.json": lambda f: EncodedParts(f / "P").read(),
    "P/part-00000-00000.npy": lambda f: EncodedParts(f / "P").read(),
    "P/part-00000-00000.ids": lambda f: EncodedParts(f / "P").read(),
    "P/part-00000-00000.hashes": lambda f: EncodedParts(f / "P").read(),
    "P/part-00000-00000.titles": lambda f: EncodedParts(f / "P").read(),
    "P/part-00000-00000.tags": lambda f: EncodedParts(f / "P").read(),
    "Q/part-00000-00000.json": lambda f: EncodedParts(f / "Q").read(),
    "Q/part-00000-00000.parquet": lambda f: EncodedParts(f / "Q").read(),
    "B/corpus.jsonl": lambda f: Collection(f / "B").documents,
    "B/queries.jsonl": lambda f: Collection(f / "B").queries,
    "B/qrels/test.tsv": lambda f: Collection(f / "B").qrels("test"),
    "M/assets.extra/ids.npy": lambda f: check_ids(f / "M", ["d1", "d2"]),
    "M/assets.extra/hybrid.json": lambda f: describe_published(f / "M"),
    "M/models.config": lambda f: read_models_config(f / "M" / "models.config"),
    "M/MANIFEST.sha256": lambda f: verify_manifest(f / "M"),
}
"""Path of a file -> function that reads the file, given the root folder."""

NAMED: dict[str, Callable[[Path], Any]] = {
    "R/clicks.tsv": lambda f: list(ClickLog(f / "R" / "clicks.tsv")),
    "N/clicks.tsv.gz": lambda f: list(ClickLog(f / "N" / "clicks.tsv.gz")),
    "N/titles.txt": lambda f: read_documents(f / "N" / "titles.txt"),
    "N/titles.jsonl": lambda f: read_documents(f / "N" / "titles.jsonl"),
    "N/titles.parquet": lambda f: read_documents(f / "N" / "titles.parquet"),
    "N/log.csv": lambda f: prepared(f / "N" / "log.csv"),
    "N/log.jsonl.gz": lambda f: prepared(f / "N" / "log.jsonl.gz"),
    "N/log.parquet": lambda f: prepared(f / "N" / "log.parquet"),
    "N/D/documents.jsonl": lambda f: list(DocumentFolder(f / "N" / "D")),
    "N/shop.safetensors": lambda f: LocalModel(
        f / "N" / "shop.safetensors"
    ).search(["hex"]),
    "M/saved_model.pb": lambda f: signature_defs(f / "M"),
}
"""Files that the user names, which may be pipes and links."""


def write_named(folder: Path) -> None:
    """Writes one file of each kind that the user names."""
    folder.mkdir()
    titles = ["hex bolt", "wood glue", "lamp"]
    with gzip.open(folder / "clicks.tsv.gz", "wt") as file:
        file.writelines(f"{title[:3]}\t{title}\n" for title in titles * 9)
    (folder / "titles.txt").write_text("\n".join(titles))
    (folder / "titles.jsonl").write_text(
        "".join(
            json.dumps({"id": f"d{n}", "title": title, "tags": ["red"]}) + "\n"
            for n, title in enumerate(titles)
        )
    )
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(
        arrow.table({"id": ["a", "b", "c"], "title": titles}),
        folder / "titles.parquet",
    )
    log = [{"query": f"q {n}", "title": titles[n % 3]} for n in range(60)]
    parquet.write_table(arrow.Table.from_pylist(log), folder / "log.parquet")
    write_csv(folder / "log.csv", log)
    lines = "".join(json.dumps(row) + "\n" for row in log)
    (folder / "log.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (folder / "D").mkdir()
    (folder / "D" / "documents.jsonl").write_text(
        '{"_id": "d", "text": "One bolt. Two nuts."}\n' * 1
    )
    export_portable(
        None,
        folder / "shop.safetensors",
        Documents(["a", "b", "c"], titles),
        hybrid=HybridSettings(),
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    """A folder of each kind, small and complete."""
    root = tmp_path_factory.mktemp("folders")
    run, teacher = root / "R", root / "T"
    (run / "checkpoints").mkdir(parents=True)
    towers = dssm.TwoTower(*(dssm.DSSMEncoder([4]) for _ in range(2)))
    towers.save(run / "model.keras")
    shutil.copy(run / "model.keras", run / "checkpoints" / "last.keras")
    settings = TrainingConfig("a.tsv", "lstm_32")
    found = {"pairs": 1, "bad_lines": 0, "digests": {}}
    config = {"version": __version__, **settings.to_dict(), **found}
    write_json(run / "config.json", config)
    write_json(run / "metrics.json", {"test": {"mrr": 0.5}})
    write_csv(run / "history.csv", [{"epoch": 1, "updates": 2, "loss": 0.5}])
    data = {"spec": "a.tsv", "files": 1, "bytes": 9, "sha256": "ab"}
    training = {
        "training": {
            "started": "2026-11-28T03:05:16Z",
            "data": data,
            "texts": {
                "sample": 1, "scripts": {"LATIN": 1.0}, "query_words": [1, 2],
            },
        },
        "evaluations": {
            "test/retrieve": {
                "date": "2026-11-28T03:10:11Z", "data": data, "queries": 1,
                "documents": 2,
                "systems": {"model": {"ndcg@1": [0.5, 0.1], "map": [0.4, 0]}},
                "above_bm25": {"ndcg@1": [0.5, 0.1], "map": [0.4, 0]},
            },
        },
    }  # fmt: skip
    export = {
        "documents": 2, "date": "2026-11-28T03:10:11Z",
        "models": {"retriever": 1, "query_encoder": 1},
        "run": {"name": "R", "config": {"seed": 0}, "facts": training},
    }  # fmt: skip
    write_json(run / "card.json", {**training, "exports": [export]})
    write_json(run / "hybrid.json", HybridSettings().to_dict())
    write_json(
        run / "given_texts.json", {"titles": ["a"], "judged": {"q": ["b"]}}
    )
    write_json_gz(run / "hard_negatives.json.gz", {"epoch": 1})
    (run / "clicks.tsv").write_text("hex\thex bolt\nglue\twood glue\t2\n")
    lists = [["hex", ["hex bolt"], ["lamp"], [1.0]], ["b", ["c"], ["d"]]]
    write_json_gz(run / "mined_lists.json.gz", {"lists": lists})
    targets = {"d1": Target(3, [0, 2], ["bolt"])}
    DocumentTargets(targets, SalienceCounts(0.5, 1)).write(
        run / "document_targets.json.gz"
    )
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
                    ["hex bolt", "wood glue"],
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
    (root / "M" / "assets.extra").mkdir(parents=True)
    about = {
        "settings": HybridSettings(bm25_words="words").to_dict(),
        "parts": ["bm25"], "forms": 3, "terms": 2,
    }  # fmt: skip
    write_json(root / "M" / "assets.extra" / "hybrid.json", about)
    np.save(root / "M" / "assets.extra" / "ids.npy", id_hashes(["d1", "d2"]))
    graph = SavedModel().meta_graphs.add()
    graph.meta_info_def.tags.append("serve")
    graph.signature_def["serving_default"].inputs["texts"].name = "texts:0"
    model = SavedModel(saved_model_schema_version=1, meta_graphs=[graph])
    (root / "M" / "saved_model.pb").write_bytes(model.SerializeToString())
    write_named(root / "N")
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


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Cuts a file, or changes, repeats or removes some of its bytes."""
    start, end = sorted(rng.integers(0, len(data) + 1, 2).tolist())
    end = min(end, start + 8)
    noise = rng.integers(0, 256, end - start, np.uint8).tobytes()
    digits = bytes(rng.choice(list(b'0123456789-.eE[]{}",:nul \n\t'), 3))
    return [
        data[:start],
        data[:start] + noise + data[end:],
        data[:start] + digits + data[end:],
        data[:start] + data[start:end] * 3 + data[end:],
        data[:start] + data[end:],
        b"",
    ][rng.choice(6, p=[0.2, 0.3, 0.3, 0.08, 0.1, 0.02])]


JSON_VALUES = (
    None, True, -1, 0, 1.5, 10**30, float("nan"), "", "a\nb", "2", [], [[1]],
    {}, {"a": None},
)  # fmt: skip


def changed(value: Any, rng: np.random.Generator) -> Any:
    """Replaces a value within a JSON value by another of any type."""
    if isinstance(value, dict | list) and value and rng.random() < 0.8:
        copy: Any = value.copy()
        keys = list(copy) if isinstance(copy, dict) else range(len(copy))
        key = keys[rng.integers(len(keys))]
        if rng.random() < 0.2:
            del copy[key]
        else:
            copy[key] = changed(copy[key], rng)
        return copy
    return JSON_VALUES[rng.integers(len(JSON_VALUES))]


@pytest.mark.filterwarnings("ignore")  # of Keras, of names in an archive
@pytest.mark.parametrize("name", READERS | NAMED)
def test_a_damaged_file_is_one_line(name, folders, tmp_path):
    """Each damage is read, or ends with a line that names the file."""
    copy = tmp_path / "copy"
    shutil.copytree(folders, copy)
    path = copy / name
    data = path.read_bytes()
    rng = np.random.default_rng(list(name.encode()))
    refused, count = (
        0,
        12 if name.endswith(".keras") else 40 if "log." in name else 150,
    )
    for number in range(count):
        content = damaged(data, rng)
        if ".json" in name and number % 2:
            if name.endswith("l"):
                lines = [changed(json.loads(t), rng) for t in data.splitlines()]
                content = "\n".join(map(json.dumps, lines)).encode()
            elif name.endswith(".gz"):
                value = [json.loads(t) for t in gzip.open(path, "rt")]
                value = changed(value, rng)
                lines = value if isinstance(value, list) else [value]
                text = "".join(json.dumps(line) + "\n" for line in lines)
                content = gzip.compress(text.encode())
            else:
                content = json.dumps(changed(json.loads(data), rng)).encode()
        path.write_bytes(content)
        try:
            (READERS | NAMED)[name](copy)
        except InputError as error:
            refused += 1
            message = str(error)
            assert len(message.splitlines()) == 1, message
            assert str(copy) in message, message
        path.write_bytes(data)
    assert refused >= count / 5


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


@pytest.mark.parametrize("chunk", [3, 5, 1000])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize(("content", "without", "with_end"), [
    (b"a\r\n\nb\n", ["a", "", "b"], ["a", "", "b"]),
    (b"\xef\xbb\xbfa\n\r\n \n", ["a"], ["a", "", " "]),
    (b"\n\n\xc3\xbc", ["", "", "\u00fc"], ["", "", "\u00fc"]),
    (b"a\n ", ["a"], ["a", " "]),
    (b"a\rb\n", ["a\rb"], ["a\rb"]),
])  # fmt: skip
def test_blank_lines_at_the_end(
    content, without, with_end, name, chunk, tmp_path, monkeypatch
):
    monkeypatch.setattr(plain_files, "_CHUNK", chunk)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if "gz" in name else content)
    assert list(text_lines(path)) == without
    assert list(text_lines(path, blank_end=True)) == with_end


def test_an_empty_file(tmp_path):
    path = tmp_path / "a.txt"
    for content, lines in ((b"", []), (b"\n\n", ["", ""])):
        path.write_bytes(content)
        assert list(text_lines(path, blank_end=True)) == lines
        with pytest.raises(InputError, match="a.txt: found an empty file"):
            list(text_lines(path))


def test_the_line_that_is_no_utf8(tmp_path, monkeypatch):
    monkeypatch.setattr(plain_files, "_CHUNK", 4)
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\ncaf\xe9\n")
    with pytest.raises(InputError, match=r"txt:3: found invalid UTF-8 \(une"):
        list(text_lines(path))
