"""The models of one training: published, and served, all or none."""

import importlib
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import Documents, export_models
from keras_lstm_dssm.export.graphs import retriever
from keras_lstm_dssm.export.publish.versions import publication, publish
from keras_lstm_dssm.files import lock_folder
from keras_lstm_dssm.model_folders import read_models_config, version_folders
from keras_lstm_dssm.serving import Client, PredictionServer
from tests.export.agreement import rows_of
from tests.export.graphs.kinds import pair_scorer
from tests.serving.tiny_models import save_encoder
from tests.serving.wire import warmup_requests

TITLES = ["steel hex bolt", "wood glue", "garden hose"]
export_module = importlib.import_module(export_models.__module__)
DOCUMENTS = Documents(["t1", "t2", "t3"], TITLES)
pytestmark = pytest.mark.usefixtures("remembered_graphs")


@pytest.fixture(scope="module")
def model() -> dssm.TwoTower:
    return dssm.TwoTower(dssm.RNNEncoder(3), dssm.RNNEncoder(3))


@pytest.fixture(scope="module")
def first_export(model: dssm.TwoTower, tmp_path_factory) -> Path:
    """Version 1 of all models; tests take a copy."""
    folder = tmp_path_factory.mktemp("first_export")
    export_models(model, folder, DOCUMENTS)
    return folder


@pytest.fixture
def models(first_export: Path, tmp_path) -> Path:
    """A copy of version 1 of all models."""
    return shutil.copytree(first_export, tmp_path / "models")


def encoders(*numbers: int) -> dict[str, list[int]]:
    return dict.fromkeys(["document_encoder", "query_encoder"], [*numbers])


def versions(models_dir: Path) -> dict[str, list[int]]:
    return {p.parent.name: [*version_folders(p.parent)]
            for p in sorted(models_dir.glob("*/1"))}  # fmt: skip


def live(models_dir: Path) -> dict[str, list[int]]:
    """The versions that a server loads, by its configuration."""
    config = read_models_config(models_dir / "models.config")
    return {
        entry.name: [*entry.model_version_policy.specific.versions]
        for entry in config.model_config_list.config
    }


def test_one_number_above_every_version(model, models):
    """A retriever that is not exported again keeps its version."""
    assert versions(models) == live(models) == encoders(1) | {"retriever": [1]}
    for name in versions(models):
        assert warmup_rows(models / name / "1") == [1, 8, 64]
    publish(models / "query_encoder", Path.mkdir, version=4)
    batching = "max_batch_size { value: 32 }"
    (models / "batching.config").write_text(batching)
    folders = export_models(model, models)
    assert (models / "batching.config").read_text() == batching
    names = ("query_encoder", "document_encoder")
    assert folders == [models / name / "5" for name in names]
    for folder in folders:
        assert warmup_rows(folder) == [1, 8]
    all_versions = {"query_encoder": [1, 4, 5], "retriever": [1]}
    assert versions(models) == encoders(1, 5) | all_versions
    assert live(models) == encoders(5) | {"retriever": [1]}


def warmup_rows(version: Path) -> list[int]:
    return [rows_of(request)[1] for request in warmup_requests(version)]


KILLED = """\
import os, signal, sys
from pathlib import Path
from keras_lstm_dssm import RNNEncoder, TwoTower
from keras_lstm_dssm.export import export_models
from keras_lstm_dssm.export.publish import versions

replace = os.replace

def die(*arguments, **options):
    if Path(arguments[-1]) == Path(sys.argv[1], "document_encoder", "2"):
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(*arguments, **options)

if sys.argv[2] == "writing":
    versions.write_manifest = lambda _: os.kill(os.getpid(), signal.SIGKILL)
os.rename = os.replace = die
Path.rename = die  # in Python 3.10 it does not look os.rename up
export_models(TwoTower(RNNEncoder(3), RNNEncoder(3)), sys.argv[1])
"""


@pytest.mark.parametrize(("moment", "renamed"), [
    ("writing", {}), ("renaming", {"query_encoder": [1, 2]})
])  # fmt: skip
def test_an_export_that_is_killed_leaves_the_old_models_live(
    model, models, fresh_process, moment, renamed
):
    """Until the next export, which becomes live as a whole."""
    before = live(models)
    with PredictionServer(models, port=0, poll_seconds=0) as server:
        fresh_process(KILLED, models, moment, exit_code=-9)
        assert [*models.glob("*/.publish-*")]
        server.models.refresh()
        # The query encoder's version may have its number, and is not served.
        assert versions(models) == before | renamed
        assert live(models) == before
        assert {n: server.models.versions(n) for n in before} == before
        # The next export is above what was left, and live as a whole.
        export_models(model, models)
        server.models.refresh()
        after = before | encoders(3 if renamed else 2)
        assert live(models) == after
        assert {n: server.models.versions(n) for n in after} == after
    assert not [*models.glob("**/.p*")]


def test_what_a_killed_export_of_another_model_left_is_removed(model, models):
    left = models / "scorer" / ".publish-abc"
    left.mkdir(parents=True)
    (left / "version").mkdir()
    with publication(models):
        assert not left.exists()


def test_an_export_that_cannot_write_the_configuration_changes_nothing_live(
    model, models, monkeypatch
):
    before = live(models)
    replace = os.replace

    def full_disk(source: Path, target: Path) -> None:
        if Path(target).name == "models.config":
            raise OSError(28, "No space left on device", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="No space left"):
        export_models(model, models)
    assert versions(models) == before | encoders(1, 2)
    assert live(models) == before


def damaged_variables(models_dir: Path) -> None:
    version = models_dir / "other" / "1"
    save_encoder(version.parent, 1.0)
    (version / "MANIFEST.sha256").unlink()
    (version / "variables" / "variables.index").write_bytes(b"damaged")


@pytest.mark.parametrize(("make", "message"), [
    (lambda d: (d / "other" / "1").mkdir(parents=True),
     "other/1/saved_model.pb: not a SavedModel"),
    (lambda d: tf.saved_model.save(tf.Module(), str(d / "other" / "1")),
     "other/1: found no signature that Predict can call"),
    (lambda d: (d / "my notes" / "1").mkdir(parents=True),
     "found the name 'my notes'"),
    (damaged_variables, "found variables that cannot be read"),
    (lambda d: (d / "models.config").write_text(
        "model_config_list {\n  x: 1\n}"),
     r'models.config:2:3 : .*"x"'),
], ids=["empty", "no signature", "space", "variables", "config"])  # fmt: skip
def test_what_a_server_could_not_read_is_found_before_publishing(
    model, tmp_path, make, message
):
    make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=message):
        export_models(model, tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_version_of_an_exported_model_is_no_hindrance(
    model, tmp_path
):
    (tmp_path / "query_encoder" / "1").mkdir(parents=True)
    (tmp_path / ".trash" / "1").mkdir(parents=True)
    export_models(model, tmp_path)
    assert live(tmp_path) == encoders(2)


@pytest.mark.parametrize(("documents", "options", "message"), [
    (Documents(["a", "b"], ["a"]), {}, "1 titles and 2 ids"),
    (Documents(["a", ""], ["x", "y"]), {}, "document 1 .* is empty"),
    (None, {"vectors": "int4"}, "vectors must be one of float32, int8"),
    (None, {"max_k": 0}, "max_k is 0; expected a whole number from 1"),
    (None, {"max_k": 2.0}, "max_k is 2.0; .* a whole number"),
    (None, {"max_k": 2**31}, "expected a whole number from 1, below 2..31"),
])  # fmt: skip
def test_wrong_arguments_publish_nothing(
    model, tmp_path, documents, options, message
):
    with pytest.raises(InputError, match=message):
        export_models(model, tmp_path, documents, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_scorer_beside_encoders_and_retriever(models):
    """It is served and called while the other models do not change."""
    scorer = pair_scorer("RecurrentCosine")
    kept = {p: p.read_bytes() for p in models.rglob("*/1/**/*") if p.is_file()}
    assert kept
    config = (models / "models.config").read_text()
    with (
        PredictionServer(models, port=0, poll_seconds=0) as server,
        Client(server.address, timeout=20) as client,
    ):
        (folder,) = export_models(scorer, models)
        # Above the numbers of the other training.
        assert folder == models / "scorer" / "2"
        server.models.refresh()
        scores = client.score("steel bolt", [*TITLES, ""])
        assert list(client.status("scorer")) == [2]
        assert client.search(["bolt"], k=1)
    expected = scorer.score("steel bolt", [*TITLES, ""])
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert np.ptp(scores) > 1e-3
    assert warmup_rows(folder) == [1, 8, 64]
    assert {path: path.read_bytes() for path in kept} == kept
    assert versions(models) == encoders(1) | {"retriever": [1]}
    assert live(models) == versions(models) | {"scorer": [2]}
    # The operator's lines of the other models are as they were.
    new_config = (models / "models.config").read_text()
    assert {*config.splitlines()} <= {*new_config.splitlines()}
    readme = (models / "README.md").read_text()
    assert 'scores = client.score("bolt", ["hex bolt", ' in readme
    assert 'hits = client.search(["bolt"], k=5, model="retriever")' in readme


def test_encoders_beside_a_scorer(model, tmp_path):
    scorer = pair_scorer("RecurrentCosine")
    with pytest.raises(InputError, match="of two towers, and this model is a"):
        export_models(scorer, tmp_path, DOCUMENTS)
    assert list(tmp_path.iterdir()) == []
    (first,) = export_models(scorer, tmp_path)
    assert first == tmp_path / "scorer" / "1"
    export_models(model, tmp_path)
    assert live(tmp_path) == encoders(2) | {"scorer": [1]}
    text = (tmp_path / "batching.config").read_text()
    export_models(scorer, tmp_path)
    assert live(tmp_path) == encoders(2) | {"scorer": [3]}
    assert (tmp_path / "batching.config").read_text() == text


def test_the_folder_is_checked_again_before_publishing(
    model, first_export, tmp_path, monkeypatch
):
    """Another process may publish while documents are encoded."""
    encoded_rows = retriever.encoded_rows

    def encode_while_another_publishes(*arguments: Any) -> Any:
        shutil.copytree(first_export / "query_encoder", tmp_path / "keyvec")
        return encoded_rows(*arguments)

    name = "encoded_rows"
    monkeypatch.setattr(retriever, name, encode_while_another_publishes)
    with pytest.raises(InputError, match="found keyvec of another training"):
        export_models(model, tmp_path, DOCUMENTS)
    assert versions(tmp_path) == {"keyvec": [1]}


def test_the_card_is_written_before_another_process_publishes(
    model, tmp_path, monkeypatch
):
    """By an export that knows its run."""
    models = tmp_path / "models"
    locked = []
    write = export_module.write_models_card

    def write_under_lock(*arguments: Any) -> None:
        with pytest.raises(InputError, match="is publishing models here"):
            with lock_folder(models, "publishing models"):
                pass
        locked.append(models)
        write(*arguments)

    monkeypatch.setattr(export_module, "write_models_card", write_under_lock)
    export_models(model, models, DOCUMENTS, run=tmp_path / "run")
    assert locked == [models]
    card = (models / "CARD.md").read_text()
    assert "| `document_encoder` | 1 |" in card
    (row,) = [r for r in card.splitlines() if r.startswith("| `retriever`")]
    assert row.startswith("| `retriever` | 1 |") and "| 3 | run |" in row


OTHER_EXPORT = """
import sys
import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import export_models
model = dssm.TwoTower(dssm.RNNEncoder(3), dssm.RNNEncoder(3))
export_models(model, sys.argv[1])
"""


def test_an_export_waits_while_another_process_publishes(
    tmp_path, fresh_process
):
    with publication(tmp_path):
        other = fresh_process.start(OTHER_EXPORT, tmp_path)
        # To its end, or until it waits.
        while line := other.stderr.readline():
            if "waiting for another process that is publishing" in line:
                break
        assert line and versions(tmp_path) == {}
    with other:
        _, errors = other.communicate(timeout=60)
    assert other.returncode == 0, errors
    assert versions(tmp_path) == live(tmp_path) == encoders(1)
