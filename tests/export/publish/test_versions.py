"""Version folders: whole, numbered, published together, and as they were."""

import os
import shutil
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.publish.versions import (
    MANIFEST,
    publish,
    publish_together,
    verify_manifest,
    write_manifest,
)
from keras_lstm_dssm.model_folders import (
    model_folder,
    model_folders,
    version_folders,
)
from tests.limits import largest_file


def write(path: Path) -> None:
    path.mkdir()
    (path / "saved_model.pb").write_bytes(b"model")


def test_numbers_follow_the_largest(tmp_path):
    base = tmp_path / "models" / "encoder"
    assert publish(base, write) == base / "1"
    assert publish(base, write, version=7) == base / "7"
    assert publish(base, write) == base / "8"
    assert (base / "8" / "saved_model.pb").read_bytes() == b"model"
    assert sorted(os.listdir(base)) == ["1", "7", "8"]


def test_names_that_are_no_version_do_not_count(tmp_path):
    for name in ("12.old", "-3", "v4", "²", "0005", str(2**63)):
        (tmp_path / name).mkdir()
    (tmp_path / "99").write_text("a file, not a folder")
    assert version_folders(tmp_path) == {5: tmp_path / "0005"}
    assert publish(tmp_path, write).name == "6"


@pytest.mark.parametrize("version", [3, 0, -1, 2**63])
def test_a_wrong_number_is_refused_before_writing(tmp_path, version):
    publish(tmp_path, write, version=3)
    with pytest.raises(InputError, match=f"version {version}"):
        publish(tmp_path, lambda path: pytest.fail("wrote"), version=version)
    assert os.listdir(tmp_path) == ["3"]


def test_no_number_is_left(tmp_path):
    publish(tmp_path, write, version=2**63 - 1)
    with pytest.raises(InputError, match="the next version is 2..63"):
        publish(tmp_path, write)
    assert os.listdir(tmp_path) == [str(2**63 - 1)]


def test_a_full_disk_is_one_line(tmp_path):
    """TensorFlow has an error of its own for it."""
    module = tf.Module()
    module.numbers = tf.Variable(tf.zeros([1000, 100]))

    def save(path: Path) -> None:
        with largest_file(100_000):
            tf.saved_model.save(module, str(path))

    with pytest.raises(InputError) as caught:
        publish(tmp_path / "encoder", save)
    assert str(caught.value) == (
        f"{tmp_path / 'encoder'}: the new version cannot be written (File too "
        "large); make room, or name another folder"
    )
    assert os.listdir(tmp_path / "encoder") == []


def test_an_error_of_the_graph_stays_one(tmp_path):
    def fail(path: Path) -> None:
        raise tf.errors.InternalError(None, None, "a defect")

    with pytest.raises(tf.errors.InternalError):
        publish(tmp_path, fail)


def test_files_reach_the_disk_before_the_number_does(tmp_path, monkeypatch):
    synced: list[tuple[str, list[int]]] = []

    def fsync(number: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{number}"))
        synced.append((path.name, list(version_folders(tmp_path))))

    monkeypatch.setattr(os, "fsync", fsync)
    publish(tmp_path, write)
    before = ["MANIFEST.sha256", "saved_model.pb", "version"]
    assert sorted(synced[:-1]) == [(name, []) for name in before]
    assert synced[-1] == (tmp_path.name, [1])


def test_others_may_read_it(tmp_path):
    # The server in a container is another user.
    usual = tmp_path / "usual"
    usual.mkdir()
    mode = stat.S_IMODE(usual.stat().st_mode)
    path = publish(tmp_path / "encoder", write)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_writers_at_once_get_numbers_of_their_own(tmp_path):
    barrier = threading.Barrier(4)

    def together(path: Path) -> None:
        write(path)
        barrier.wait(10)

    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(publish, tmp_path, together)
    assert list(version_folders(tmp_path)) == [1, 2, 3, 4]


def test_a_number_taken_while_writing(tmp_path):
    def overtaken(path: Path) -> None:
        write(path)
        publish(tmp_path, write, version=2)

    with pytest.raises(InputError, match="version 2 exists"):
        publish(tmp_path, overtaken, version=2)
    assert os.listdir(tmp_path) == ["2"]


def versions(models_dir: Path) -> dict[str, list[int]]:
    return {p.name: [*version_folders(p)] for p in sorted(models_dir.iterdir())}


def test_models_of_one_export_have_one_number(tmp_path):
    """Above every version in the folder, of other models too."""
    publish(tmp_path / "retriever", write, version=6)
    publish(tmp_path / "document", write)
    folders = publish_together(tmp_path, {"query": write, "document": write})
    assert folders == [tmp_path / "query" / "7", tmp_path / "document" / "7"]
    assert versions(tmp_path) == {
        "document": [1, 7], "query": [7], "retriever": [6],
    }  # fmt: skip
    publish_together(tmp_path, {"query": write, "retriever": write})
    assert versions(tmp_path) == {
        "document": [1, 7], "query": [7, 8], "retriever": [6, 8],
    }  # fmt: skip


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt])
def test_a_fault_in_one_model_publishes_none(tmp_path, fault):
    publish_together(tmp_path, {"query": write, "document": write})

    def break_off(path: Path) -> None:
        write(path)
        raise fault

    with pytest.raises(fault):
        publish_together(tmp_path, {"query": write, "document": break_off})
    for name in ("query", "document"):
        assert os.listdir(tmp_path / name) == ["1"]


@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
def test_a_fault_between_two_renames_takes_the_first_back(
    tmp_path, monkeypatch, fault
):
    publish_together(tmp_path, {"query": write, "document": write})
    rename = Path.rename
    seen: list[dict[str, list[int]]] = []

    def interrupted(self: Path, target: Path) -> Path:
        seen.append(versions(tmp_path))
        if target == tmp_path / "document" / "2":
            raise fault
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(fault):
        publish_together(tmp_path, {"query": write, "document": write})
    assert {"document": [1], "query": [1, 2]} in seen
    assert versions(tmp_path) == {"document": [1], "query": [1]}
    assert sorted(os.listdir(tmp_path / "query")) == ["1"]


def test_a_number_taken_by_another_process_gives_way_to_the_next(tmp_path):
    rename = Path.rename

    def overtaken(self: Path, target: Path) -> Path:
        if target == tmp_path / "document" / "1":
            write(target)
            (target.parent / "2").mkdir()
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "rename", overtaken)
        publish_together(tmp_path, {"query": write, "document": write})
    assert versions(tmp_path) == {"document": [1, 2, 3], "query": [3]}


@pytest.mark.parametrize("name", [
    "", ".", "..", "../other", "a/b", "/etc", "a\\b", "a\0", ".hidden", "-rf",
    "two words", "$(id)", "a\n", "ü",
])  # fmt: skip
def test_a_name_cannot_lead_out_of_its_folder(tmp_path, name):
    with pytest.raises(InputError, match="a model's name has letters"):
        model_folder(tmp_path, name)
    assert model_folder(tmp_path, "v1.2_b-c") == tmp_path / "v1.2_b-c"


def test_folders_of_other_names_are_refused_or_hidden(tmp_path):
    publish(tmp_path / "encoder", write)
    publish(tmp_path / ".trash", write)
    (tmp_path / "no model; at all").mkdir()
    assert model_folders(tmp_path) == {"encoder": tmp_path / "encoder"}
    publish(tmp_path / "$(id)", write)
    with pytest.raises(InputError, match=r"the name '\$\(id\)'"):
        model_folders(tmp_path)


def write_two(folder: Path) -> None:
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "ü 1").write_bytes(b"")


@pytest.fixture
def version(tmp_path) -> Path:
    """A version that was published."""
    return publish(tmp_path / "model", write_two)


def test_sha256sum_agrees(version):
    done = subprocess.run(
        ["sha256sum", "--strict", "--check", MANIFEST], cwd=version,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == "saved_model.pb: OK\nvariables/ü 1: OK\n"
    verify_manifest(version)


def move_away(path: Path) -> None:
    shutil.move(path, path.parents[1] / "elsewhere")
    path.symlink_to(path.parents[1] / "elsewhere")


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/null")


@pytest.mark.parametrize(("name", "fault", "message"), [
    ("saved_model.pb", lambda path: path.write_bytes(b"grapi"),
     "saved_model.pb: found another content than MANIFEST.sha256"),
    ("variables/ü 1", Path.unlink,
     "ü 1: it is missing, and MANIFEST.sha256 lists it; restore"),
    ("variables/more", Path.touch,
     "variables/more: MANIFEST.sha256 does not list it"),
    ("variables/ü 1", link,
     "ü 1: found a link or a device, expected a plain file"),
    ("variables", move_away, "variables: found a link or a device"),
    (MANIFEST, Path.unlink,
     "MANIFEST.sha256: cannot be read .*; restore the version"),
    (MANIFEST, lambda path: path.write_text("../outside\n"),
     "MANIFEST.sha256:1: found '../outside', expected a SHA-256"),
    (MANIFEST, lambda path: path.write_text(2 * path.read_text()),
     "MANIFEST.sha256:3: found .* expected .* once"),
])  # fmt: skip
def test_faults_are_found(version, name, fault, message):
    fault(version / name)
    with pytest.raises(InputError, match=message):
        verify_manifest(version)


def test_a_link_is_not_published(tmp_path):
    def write_link(folder: Path) -> None:
        write_two(folder)
        (folder / "assets").symlink_to(tmp_path)

    with pytest.raises(InputError, match="assets: found a link or a device"):
        publish(tmp_path / "model", write_link)
    assert not [*(tmp_path / "model").iterdir()]
    (tmp_path / "a\nb").write_bytes(b"")
    with pytest.raises(InputError, match=r"found the name 'a\\nb', expected"):
        write_manifest(tmp_path)
