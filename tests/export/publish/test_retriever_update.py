"""A refreshed retriever equals a full export, and encodes what changed."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import (
    Documents,
    export_models,
    export_retriever,
    update_retriever,
)
from keras_lstm_dssm.export.publish import retriever_update
from keras_lstm_dssm.export.publish.models_config import served_version
from keras_lstm_dssm.serving import SavedRetriever
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.tools import export
from tests.export.agreement import check_export
from tests.fresh_process import ForkedProcess
from tests.models.small_keyvec import small_keyvec
from tests.serving.wire import predict_request
from tests.tools.conftest import succeed

OLD = {f"t{n}": f"number {n} steel bolt" for n in range(12)}
ADDED = {"t3": "number 3 brass bolt", "t20": "wood glue", "t4": OLD["t4"]}
GONE = ["t5", "t99", "t0"]
pytestmark = pytest.mark.usefixtures("remembered_graphs")
NEW = {
    key: ADDED.get(key, title) for key, title in OLD.items() if key not in GONE
} | {"t20": "wood glue"}


def documents(titles: dict[str, str]) -> Documents:
    return Documents(list(titles), list(titles.values()))


@pytest.fixture(scope="module")
def model() -> dssm.TwoTower:
    return dssm.TwoTower(dssm.DSSMEncoder([4]), dssm.DSSMEncoder([4]))


@pytest.fixture(scope="module")
def old(model: dssm.TwoTower, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("old") / "models"
    export_models(model, folder, documents(OLD), max_k=9)
    return folder


@pytest.fixture
def models(old: Path, tmp_path) -> Path:
    return shutil.copytree(old, tmp_path / "models")


def variables(version: Path) -> dict[str, np.ndarray]:
    reader = tf.train.load_checkpoint(str(version / "variables/variables"))
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    return {
        name.removesuffix(suffix): reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
        if name.endswith(suffix)
    }


def assert_equal(version: Path, full: Path) -> None:
    """The last bits of a vector depend on the batch it was encoded in."""
    found, expected = variables(version), variables(full)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if name == "vectors/rows":
            np.testing.assert_allclose(found[name], value, atol=2e-7)
        else:
            np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.fixture
def encoded(monkeypatch) -> list[str]:
    """The titles that are encoded."""
    titles: list[str] = []
    encode = retriever_update.encode_in_batches

    def counted(function, texts, *arguments):
        titles.extend(texts)
        return encode(function, texts, *arguments)

    monkeypatch.setattr(retriever_update, "encode_in_batches", counted)
    return titles


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_equal_to_a_full_export(kind, model, old, tmp_path, encoded):
    models = shutil.copytree(old, tmp_path / "models")
    if kind == "int8":
        export_models(model, models, documents(OLD), kind, max_k=9)
    result = update_retriever(models / "retriever", documents(ADDED), GONE)
    number = 3 if kind == "int8" else 2
    folder = models / "retriever" / str(number)
    assert result == (folder, True, 11, 2, 2, ["t99"])
    assert encoded == ["number 3 brass bolt", "wood glue"]
    # The new version is live, with the encoders of before.
    assert served_version(models / "retriever") == result.folder
    encoders = served_version(models / "query_encoder")
    assert encoders and int(encoders.name) == number - 1
    full = export_models(
        model, tmp_path / "full", documents(NEW), kind, max_k=9
    )[-1]
    assert_equal(result.folder, full)
    before = variables(models / "retriever" / str(number - 1))
    for name in ("rows",) if kind == "float32" else ("codes", "scales"):
        # Titles that stay have the vectors of before, bit for bit.
        np.testing.assert_array_equal(
            variables(result.folder)[f"vectors/{name}"][[0, 1, *range(3, 10)]],
            before[f"vectors/{name}"][[1, 2, 4, *range(6, 12)]],
        )
    for name in ("retriever.json", "title_hashes.npy"):
        files = [path / "assets.extra" / name for path in (result.folder, full)]
        assert files[0].read_bytes() == files[1].read_bytes()
    inputs = {"text": ["wood glue", "brass bolt"], "k": np.int32([20, 3])}
    request = predict_request("retriever", **inputs)
    cpp, other = check_export((result.folder, request), (full, request))
    assert cpp["ids"].shape == (2, 9)
    np.testing.assert_array_equal(cpp["ids"], other["ids"])
    np.testing.assert_allclose(cpp["scores"], other["scores"], atol=1e-6)
    # A refresh of a refresh.
    again = update_retriever(models / "retriever", None, ["t20"])
    assert (again.rows, again.encoded, again.deleted) == (10, 0, 1)
    hits = SavedRetriever(again.folder).search(["wood glue"], 20)[0]
    assert "t20" not in {hit.id for hit in hits}


@pytest.mark.parametrize("has_model", [True, False])
def test_a_hybrid_equals_a_full_export(has_model, model, tmp_path, encoded):
    """Stems of new titles too; BM25 alone has no encoder to encode with."""
    towers = model if has_model else None
    settings = HybridSettings(0.5, 0.3, 0.2, 1.2, 0.75, "stems")
    export_models(
        towers, tmp_path / "models", documents(OLD), max_k=9, hybrid=settings
    )
    added = ADDED | {"t21": "Glued woods"}
    result = update_retriever(
        tmp_path / "models" / "retriever", documents(added), GONE
    )
    assert (result.rows, result.encoded, result.deleted) == (12, 3, 2)
    assert len(encoded) == 3 * has_model
    full = export_models(
        towers,
        tmp_path / "full",
        documents(NEW | {"t21": "Glued woods"}),
        max_k=9,
        hybrid=settings,
    )[-1]
    assert_equal(result.folder, full)
    for name in ("hybrid.json", "hybrid.npz", "title_hashes.npy"):
        files = [path / "assets.extra" / name for path in (result.folder, full)]
        assert files[0].read_bytes() == files[1].read_bytes()
    queries = ["gluing wood", "bolts 3"]
    found, expected = (
        SavedRetriever(path).search(queries, 9)
        for path in (result.folder, full)
    )
    for hits, right in zip(found, expected, strict=True):
        assert [hit.id for hit in hits] == [hit.id for hit in right]
        np.testing.assert_allclose(
            [hit.score for hit in hits], [hit.score for hit in right], atol=1e-6
        )
    assert {hit.id for hit in found[0]} >= {"t20", "t21"}


def test_tags_change_without_encoding(model, tmp_path, encoded):
    tags = [["steel"] for _ in OLD]
    tagged = documents(OLD)._replace(tags=tags)
    export_models(model, tmp_path / "models", tagged)
    add = Documents(["t1", "t30"], [OLD["t1"], "desk lamp"], tags=[["a"], []])
    result = update_retriever(tmp_path / "models" / "retriever", add)
    assert encoded == ["desk lamp"]
    expected = Documents(
        [*OLD, "t30"], [*OLD.values(), "desk lamp"],
        tags=[["a"] if key == "t1" else ["steel"] for key in OLD] + [[]],
    )  # fmt: skip
    full = export_models(model, tmp_path / "full", expected)[-1]
    assert_equal(result.folder, full)


def test_a_keyvec(tmp_path):
    keyvec = small_keyvec()
    old = Documents(["a", "b"], ["Steel. Bolt.", "Wood glue."])
    export_models(keyvec, tmp_path, old)
    new = Documents(["a", "c"], ["Steel. Wood.", "Lamp."])
    result = update_retriever(tmp_path / "retriever", new, ["b"])
    hits = SavedRetriever(result.folder).search(["Steel. Wood."], 2)[0]
    assert [hit.id for hit in hits] == ["a", "c"]
    assert hits[0].score == pytest.approx(1, abs=1e-6)


def test_the_program(models, tmp_path, capsys):
    add, delete = tmp_path / "add.tsv", tmp_path / "ids"
    add.write_text("".join(f"{key}\t{title}\n" for key, title in ADDED.items()))
    delete.write_text("\n".join(GONE) + "\n")
    flags = {"update": models / "retriever", "add": add}
    succeed(export, **flags, delete=delete)
    printed = capsys.readouterr().out
    assert "--delete: 1 ids are not in the retriever: 't99'\n" in printed
    assert "11 titles: 2 encoded, 2 removed\nwrote " in printed
    succeed(export, **flags)
    assert "nothing has changed, no new version" in capsys.readouterr().out
    assert len([*(models / "retriever").iterdir()]) == 2
    shutil.rmtree(models / "document_encoder" / "1")
    with pytest.raises(InputError, match="no encoder with the fingerprint"):
        update_retriever(models / "retriever", delete=["t20"])


OTHER_UPDATE = """
import sys
from keras_lstm_dssm.export import Documents, update_retriever
update_retriever(sys.argv[1], Documents(["t40"], ["of another process"]))
"""


def test_two_updates_at_once_lose_nothing(models, monkeypatch, fresh_process):
    """The second process waits, and adds to what the first one publishes."""
    encode = retriever_update.encode_in_batches
    others: list[ForkedProcess] = []

    def encode_while_another_starts(*arguments):
        other = fresh_process.start(OTHER_UPDATE, models / "retriever")
        others.append(other)
        # To its end, or until it waits.
        while line := other.stderr.readline():
            if "waiting" in line:
                break
        return encode(*arguments)

    monkeypatch.setattr(
        retriever_update, "encode_in_batches", encode_while_another_starts
    )
    update_retriever(models / "retriever", documents(ADDED))
    (other,) = others
    with other:
        _, errors = other.communicate(timeout=60)
    assert other.returncode == 0, errors
    live = served_version(models / "retriever")
    assert live and live.name == "3"
    ids = {key.decode() for key in variables(live)["ids"]}
    assert ids == {*OLD, *ADDED, "t40"}


def test_a_retriever_of_an_earlier_version(model, tmp_path):
    towers = model.query_encoder, model.document_encoder
    version = export_retriever(*towers, ["a"], ["one"], tmp_path / "retriever")
    shutil.rmtree(version / "assets.extra")
    with pytest.raises(InputError, match="found no assets.extra/retriever"):
        update_retriever(tmp_path / "retriever", None, ["a"])
