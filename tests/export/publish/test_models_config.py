"""models.config: exports move their own versions and nothing else."""

import pytest

from keras_lstm_dssm.export.publish.models_config import (
    read_models_config,
    served_version,
    update_models_config,
)


def test_an_export_moves_its_own_versions_and_nothing_else(tmp_path):
    path = tmp_path / "models.config"
    update_models_config(path, "ab", {"a": 1, "b": 1}, "/models")
    written = path.read_text()
    line = "    model_version_policy {{ specific {{ versions: {} }} }}{}\n"
    assert written.count(line.format(1, "  # newest export of a")) == 1
    # One is pinned by its operator: without the remark.
    pinned = "# mine\n" + written.replace("  # newest export of b", "")
    path.write_text(pinned)
    update_models_config(path, "abc", {"a": 23, "b": 23, "c": 23}, "/models")
    moved = pinned.replace("1 } }  # newest", "23 } }  # newest")
    assert path.read_text().startswith(moved.rstrip()[:-1])
    assert [
        [*model.model_version_policy.specific.versions]
        for model in read_models_config(path).model_config_list.config
    ] == [[23], [1], [23]]
    inode = path.stat().st_ino
    update_models_config(path, "abc", {"a": 23, "b": 23, "c": 23}, "/models")
    assert path.stat().st_ino == inode  # nothing to write


def test_the_version_that_is_served(tmp_path):
    """Not that of an interrupted export, which models.config does not name."""
    base = tmp_path / "a"
    assert served_version(base) is None
    for version in "124":
        (base / version).mkdir(parents=True)
    assert served_version(base) == base / "4"
    update_models_config(tmp_path / "models.config", "ab", {"a": 2}, "/m")
    assert served_version(base) == base / "2"
    (base / "2").rmdir()
    assert served_version(base) == base / "4"
    assert served_version(tmp_path / "b") is None


@pytest.mark.parametrize(
    "written",
    [
        "",
        "model_config_list: <config: <name: 'other' base_path: '/o'>>",
        "model_config_list { config { name: 'other' base_path: '/o' } } # }",
    ],
)
def test_another_way_to_write_the_list(tmp_path, written):
    path = tmp_path / "models.config"
    path.write_text(written)
    update_models_config(path, ["b", "a"], {"b": 3}, "/models")
    listed = read_models_config(path).model_config_list.config
    old = ["other"] if written else []
    assert [model.name for model in listed] == [*old, "a", "b"]
    assert listed[-1].base_path == "/models/b"
    update_models_config(path, ["b", "a"], {"b": 4}, "/models")
    listed = read_models_config(path).model_config_list.config
    assert listed[-1].model_version_policy.specific.versions == [4]
