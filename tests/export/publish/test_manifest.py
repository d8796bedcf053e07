"""The manifest of a version: `sha256sum` agrees, and damage is found."""

import shutil
import subprocess
from pathlib import Path

import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.publish.versions import (
    MANIFEST,
    publish,
    verify_manifest,
    write_manifest,
)


def write(folder: Path) -> None:
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "ü 1").write_bytes(b"")


@pytest.fixture
def version(tmp_path) -> Path:
    """A version that was published."""
    return publish(tmp_path / "model", write)


def test_sha256sum_agrees(version):
    done = subprocess.run(
        ["sha256sum", "--strict", "--check", MANIFEST],
        cwd=version,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "saved_model.pb: OK\nvariables/ü 1: OK\n"
    verify_manifest(version)


def change(version: Path) -> None:
    (version / "saved_model.pb").write_bytes(b"grapi")


def remove(version: Path) -> None:
    (version / "variables" / "ü 1").unlink()


def add(version: Path) -> None:
    (version / "variables" / "more").write_bytes(b"")


def link(version: Path) -> None:
    remove(version)
    (version / "variables" / "ü 1").symlink_to("/dev/null")


def link_a_folder(version: Path) -> None:
    shutil.move(version / "variables", version.parent / "elsewhere")
    (version / "variables").symlink_to(version.parent / "elsewhere")


def without(version: Path) -> None:
    (version / MANIFEST).unlink()


def damage(version: Path) -> None:
    (version / MANIFEST).write_text("../outside\n")


def twice(version: Path) -> None:
    text = (version / MANIFEST).read_text()
    (version / MANIFEST).write_text(text + text)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (change, "saved_model.pb: found another content than MANIFEST.sha256"),
        (remove, "ü 1: it is missing, and MANIFEST.sha256 lists it; restore"),
        (add, "variables/more: MANIFEST.sha256 does not list it"),
        (link, "ü 1: found a link or a device, expected a plain file"),
        (link_a_folder, "variables: found a link or a device"),
        (without, "MANIFEST.sha256: no such plain file; export the version"),
        (damage, "MANIFEST.sha256:1: found '../outside', expected a SHA-256"),
        (twice, "MANIFEST.sha256:3: found .* expected .* once"),
    ],
)
def test_faults_are_found(version, fault, message):
    fault(version)
    with pytest.raises(InputError, match=message):
        verify_manifest(version)


def test_a_link_is_not_published(tmp_path):
    def write_link(folder: Path) -> None:
        write(folder)
        (folder / "assets").symlink_to(tmp_path)

    with pytest.raises(InputError, match="assets: found a link or a device"):
        publish(tmp_path / "model", write_link)
    assert not [*(tmp_path / "model").iterdir()]
    (tmp_path / "a\nb").write_bytes(b"")
    with pytest.raises(InputError, match=r"found the name 'a\\nb', expected"):
        write_manifest(tmp_path)
