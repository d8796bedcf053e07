"""Files from other people can hold numbers and text, never code."""

import ast
import json
import pathlib
import re
import zipfile

import keras
import numpy as np
import pytest
from packaging.version import Version

import lstm_dssm_programs
import benchmarks
import keras_lstm_dssm as dssm
import lstm_dssm_client
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.run_folder import RunFolder

ROOT = pathlib.Path(dssm.__file__).parent
LINKS = ("export", "tools")
UNPICKLES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib",
             "marshal", "shelve"}  # fmt: skip
UNSAFE = {"allow_pickle": True, "safe_mode": False, "weights_only": False,
          "shell": True}  # fmt: skip
"""Arguments that may not have this value; nor one that is not constant."""
RUNS = {"eval", "exec", "enable_unsafe_deserialization", "read_pickle"}


def sources() -> list[pathlib.Path]:
    """All modules; two folders of the package are symbolic links."""
    beside = (lstm_dssm_client.__file__, benchmarks.__file__)
    folders = [
        ROOT,
        *(ROOT / name for name in LINKS),
        *(pathlib.Path(path).parent for path in beside),
    ]
    modules = {file for f in folders for file in f.rglob("*.py")}
    return [*sorted(modules), pathlib.Path(lstm_dssm_programs.__file__)]


def complaints(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        found += [n for n in names if n.split(".")[0] in UNPICKLES]
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            found += [called] if called in RUNS else []
            for keyword in node.keywords:
                if keyword.arg in UNSAFE and (
                    not isinstance(keyword.value, ast.Constant)
                    or keyword.value.value is UNSAFE[keyword.arg]
                ):
                    found.append(str(keyword.arg))
    return found


def test_no_module_unpickles_or_evaluates():
    files = sources()
    assert {"run_folder.py", "encoder.py", "train.py", "towers.py"} <= {
        file.name for file in files
    }
    for file in files:
        assert not complaints(ast.parse(file.read_text())), file


@pytest.mark.parametrize("code", [
    "import pickle",
    "def f():\n    from joblib import load",
    "np.load(path, allow_pickle=True)",
    "keras.saving.load_model(path, safe_mode=mode)",
    "eval(text)",
])  # fmt: skip
def test_the_search_finds_them(code):
    assert complaints(ast.parse(code))


def save(folder: pathlib.Path, model: keras.Model | None = None) -> RunFolder:
    """Saves a model, by default two towers."""
    run = RunFolder(folder)
    towers = (dssm.DSSMEncoder([4]) for _ in range(2))
    (model or dssm.TwoTower(*towers)).save(run.model)
    return run


def test_a_lambda_in_a_model_is_refused(tmp_path):
    """Its code would run as soon as the model is loaded or called."""
    ran = tmp_path / "ran"
    path = str(ran)
    code = keras.layers.Lambda(lambda x: pathlib.Path(path).touch() or x)
    run = save(tmp_path, keras.Sequential([keras.Input([1]), code]))
    ran.unlink()  # it ran when the layer was made
    with pytest.raises(InputError, match="model.keras: not a model this"):
        run.load_model()
    assert not ran.exists()


def test_a_folder_may_be_a_link_and_a_file_not_lead_out_of_it(tmp_path):
    run = RunFolder(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "last.keras").write_text("")
    run.path.mkdir()
    run.checkpoint.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="last.keras: found a link to"):
        run.load_checkpoint()
    (run.path / "settings").write_text('{"gamma": 10}')
    run.config.symlink_to("settings")
    (tmp_path / "link").symlink_to(run.path)
    for name in ("run", "link"):
        assert RunFolder(tmp_path / name).read_config() == {"gamma": 10}


def test_another_program_named_in_a_model_is_refused(tmp_path):
    """A configuration cannot name any function to be called."""
    ran = tmp_path / "ran"
    run = save(tmp_path)
    with zipfile.ZipFile(run.model) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    config = json.loads(parts["config.json"])
    config["config"]["query_encoder"] = {
        "module": "os", "class_name": "system", "registered_name": None,
        "config": {"command": f"touch {ran}"},
    }  # fmt: skip
    parts["config.json"] = json.dumps(config).encode()
    with zipfile.ZipFile(run.model, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match="model.keras: not a model this"):
        run.load_model()
    assert not ran.exists()


@pytest.mark.parametrize(("name", "value", "weight"), [
    ("cells", 8000, "[8000, 24000]"),
    ("oov_buckets", 10**9, "[1000050653, 12]"),
])  # fmt: skip
def test_a_config_that_asks_for_more_than_the_file_has(
    tmp_path, name, value, weight
):
    """It is refused before the memory is filled, and nothing stays changed."""
    towers = (dssm.LSTMEncoder(cells=4) for _ in range(2))
    run = save(tmp_path, dssm.TwoTower(*towers))
    before = run.load_model().get_weights()
    with zipfile.ZipFile(run.model) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    config = json.loads(parts["config.json"])
    config["config"]["query_encoder"]["config"][name] = value
    changed = {**parts, "config.json": json.dumps(config).encode()}
    write_archive(run.model, changed)
    with pytest.raises(InputError, match=re.escape(weight)) as error:
        run.load_model()
    assert "no arrays of this size in the file" in str(error.value)
    write_archive(run.model, parts)
    for found, expected in zip(
        run.load_model().get_weights(), before, strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def write_archive(path: pathlib.Path, parts: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)


def test_a_model_of_another_kind_is_refused(tmp_path):
    stranger = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
    with pytest.raises(InputError, match="found a Sequential"):
        save(tmp_path, stranger).load_model()


def test_an_archive_cannot_reach_outside_its_folder(tmp_path):
    (tmp_path / "run").mkdir()
    run = save(tmp_path / "run")
    with zipfile.ZipFile(run.model, "a") as archive:
        for name in ("../outside", "assets/../../outside"):
            archive.writestr(name, "outside")
    before = set(tmp_path.rglob("*"))
    if Version(keras.__version__) < Version("3.13"):
        # Its warning fails for zip files, and with it the whole loading.
        with pytest.raises(InputError, match="has no attribute 'name'"):
            run.load_model()
    else:
        with pytest.warns(UserWarning, match="Skipping invalid path"):
            model = run.load_model()
        (tower, other) = model.towers
        assert tower.count_params() == other.count_params() > 4 * 50_000
    assert set(tmp_path.rglob("*")) == before
