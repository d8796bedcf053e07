"""teach: the texts of a folder, its blocks, resumption, batches with it."""

import json
import pathlib
import re

import numpy as np
import pytest

from keras_lstm_dssm import InputError
from keras_lstm_dssm.data import Pair, teacher_folder, write_collection
from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.data.teacher_folder import (
    TeacherFolder,
    TeacherVectors,
)
from keras_lstm_dssm.distillation.encoder_process import MINILM
from keras_lstm_dssm.distillation.outside_encoder import (
    absolute_encoder,
    open_outside_encoder,
)
from keras_lstm_dssm.distillation.teacher_vectors import spans_of, teach
from keras_lstm_dssm.tools import teach as program
from tests.tools.conftest import refused, succeed

__all__ = ["refused"]  # a fixture

ENCODER = """
import json, os, signal, time, zlib
import numpy as np
read = []
def encode(texts):
    read.extend(texts)
    with open("read.json", "w") as file:
        json.dump(read, file)
    if len(read) > int(os.environ.get("TEXTS_BEFORE_A_KILL", 10**9)):
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(60)
    seeds = [zlib.crc32(text.encode()) for text in texts]
    vectors = np.array([np.random.default_rng(s).normal(size=5) for s in seeds])
    return vectors * float(os.environ.get("SIGN", 1))
def wide(texts):
    return np.ones([len(texts), 6])
"""


@pytest.fixture(autouse=True)
def blocks_of_four(tmp_path, monkeypatch) -> None:
    (tmp_path / "encoder_of_this_test.py").write_text(ENCODER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(teacher_folder, "BLOCK", 4)


def texts_read() -> list[str]:
    """Returns what was encoded since the last call, by one process."""
    file = pathlib.Path("read.json")
    texts = json.loads(file.read_text()) if file.exists() else []
    file.unlink(missing_ok=True)
    return texts


SPEC = "encoder_of_this_test:encode"


def test_training_queries_and_all_titles_are_encoded_once(collection_folder):
    """The encoder reads each query and title once, also unclicked titles."""
    teacher = teach(str(collection_folder), SPEC, "TEACH")
    assert len(teacher) == 12 and teacher.vectors.shape == (12, 5)
    read = texts_read()
    assert sorted(read) == sorted(set(read))
    assert set(read) >= {"hex bolt", "steel hex bolt zinc 3 in"}
    np.testing.assert_allclose(
        teacher[["desk  lamp"]],
        open_outside_encoder(SPEC)(["desk lamp"]),
        rtol=1e-6,
    )
    assert teacher.rows(["no such text", "desk lamp"]).tolist()[0] == -1
    with pytest.raises(InputError, match="found no vector of 'no such text'"):
        teacher[["desk lamp", "no such text"]]


def test_spans_of_titles_are_encoded_between_titles_and_words():
    titles = ["18 volt cordless drill kit", "a b c d e f g h i j k l", "lamp"]
    spans = list(spans_of(titles, 9))
    assert spans == list(spans_of(titles, 9))
    for span in spans:
        assert 3 <= len(span.split()) <= 9 and span not in titles
        assert any(f" {span} " in f" {title} " for title in titles)
    assert len({len(span.split()) for span in spans}) > 3

    teach(None, SPEC, "TEACH", titles=titles, spans=9, words=True)
    settings = TeacherFolder("TEACH").read_settings()
    texts = TeacherFolder("TEACH").read_texts()
    begin = len(titles)
    end = begin + settings["spans"]
    assert texts[:begin] == titles
    assert texts[begin:end] == list(dict.fromkeys(spans))
    assert {"volt", "drill"} <= {*texts[end:]}
    assert len(texts) - end == settings["words"]


def test_queries_of_dev_and_test_are_not_read(tmp_path):
    write_collection(
        tmp_path / "judged",
        {"d1": "steel bolt", "d2": "wood glue 8 oz", "d3": "desk lamp"},
        {"q1": "bolt", "q2": "glue", "q3": "lamp"},
        {
            "train": {"q1": {"d1": 1}},
            "dev": {"q2": {"d2": 1}},
            "test": {"q3": {"d3": 1}},
        },
        [Pair("bolt", "steel bolt")],
    )
    teach("judged", SPEC, "TEACH")
    assert set(texts_read()) == {
        "bolt", "steel bolt", "wood glue 8 oz", "desk lamp",
    }  # fmt: skip


def test_products_without_a_log(tmp_path):
    (tmp_path / "c.csv").write_text("id,title\na,wood glue\nb,glue\n")
    prepare(tmp_path / "SHOP", catalogue=tmp_path / "c.csv")
    teach("SHOP", SPEC, "TEACH", words=True)
    assert texts_read() == ["wood glue", "glue", "wood"]


def test_a_killed_program_continues_with_the_blocks_that_are_missing(
    collection_folder, monkeypatch
):
    whole = teach(str(collection_folder), SPEC, "WHOLE")
    texts_read()
    monkeypatch.setenv("TEXTS_BEFORE_A_KILL", "9")
    with pytest.raises(KeyboardInterrupt):
        teach(str(collection_folder), SPEC, "TEACH")
    pathlib.Path("TEACH/vectors/.partial-1-000002.npy").touch()
    with pytest.raises(InputError, match="1 of 3 blocks of vectors are miss"):
        TeacherVectors.open("TEACH")
    monkeypatch.delenv("TEXTS_BEFORE_A_KILL")
    texts_read()
    resumed = teach(str(collection_folder), SPEC, "TEACH")
    assert len(texts_read()) == 4 + 4  # a check of the encoder; the rest
    assert resumed.sha256 == whole.sha256
    assert not list(pathlib.Path("TEACH").glob("**/.partial-*"))
    texts_read()
    teach(str(collection_folder), SPEC, "TEACH")
    assert texts_read() == []  # finished


def test_other_data_or_another_encoder_need_another_folder(
    collection_folder, monkeypatch
):
    data = str(collection_folder)
    teach(data, SPEC, "TEACH")
    with pytest.raises(InputError, match="vectors of the encoder enc.*:encode"):
        teach(data, "encoder_of_this_test:wide", "TEACH")
    pathlib.Path("clicks.tsv").write_text("bolt\thex bolt\n")
    with pytest.raises(InputError, match=r"12 texts\), expected .*\(2 texts"):
        teach("clicks.tsv", SPEC, "TEACH")
    pathlib.Path("TEACH/vectors/000001.npy").unlink()
    monkeypatch.setenv("SIGN", "-1")
    with pytest.raises(InputError, match="the encoder gives other vectors now"):
        teach(data, SPEC, "TEACH")
    pathlib.Path("docs").mkdir()
    pathlib.Path("docs/page.md").touch()
    with pytest.raises(InputError, match="found page.md, expected a new fold"):
        teach(data, SPEC, "docs")


def test_the_path_of_an_encoder_is_stored_as_an_absolute_one(
    collection_folder, monkeypatch
):
    """The folder of a teacher is found from any working directory."""
    data = str(collection_folder)
    teach(data, SPEC, "FIRST")
    teach(data, "FIRST", "SECOND")
    file = pathlib.Path("SECOND/teacher.json").resolve()
    settings = json.loads(file.read_text())
    assert settings["encoder"] == str(pathlib.Path("FIRST").resolve())
    with pytest.raises(InputError, match="vectors of the encoder /.*/FIRST"):
        teach(data, SPEC, "SECOND")
    pathlib.Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    encode = open_outside_encoder("../SECOND")
    with pytest.raises(InputError, match="/FIRST/teacher.json: found the enc"):
        encode(["no text of the data"])  # the function is found in FIRST


def test_names_of_encoders_that_are_no_folders_stay(tmp_path):
    for name in (MINILM, "model"):
        assert absolute_encoder(name) == name
        (tmp_path / name).mkdir()
    assert absolute_encoder("model") == str(tmp_path / "model")
    assert absolute_encoder(MINILM) == MINILM  # opens the package
    assert absolute_encoder(SPEC) == SPEC
    with pytest.raises(InputError, match="found the encoder ''"):
        absolute_encoder("")


def test_damaged_files_are_one_line(collection_folder):
    teach(str(collection_folder), SPEC, "TEACH")
    folder = pathlib.Path("TEACH")
    for name, damage, message in [
        ("vectors/000000.npy", b"no array", "cannot be read"),
        ("texts.jsonl.gz", b"no gzip", "cannot be read"),
        ("teacher.json", b"{}", "expected the settings of a teacher"),
    ]:
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(damage)
        with pytest.raises(InputError, match=message) as caught:
            TeacherVectors.open(folder)
        assert "\n" not in str(caught.value)
        (folder / name).write_bytes(before)
    settings = json.loads((folder / "teacher.json").read_text())
    (folder / "teacher.json").write_text(
        json.dumps({**settings, "sha256": "0"})
    )
    with pytest.raises(InputError, match="found other texts than teacher.json"):
        TeacherVectors.open(folder)
    (folder / "teacher.json").write_text(
        json.dumps({**settings, "version": "0.2.0"})
    )
    for read in (
        lambda: TeacherVectors.open(folder),
        lambda: teach(str(collection_folder), SPEC, "TEACH"),
        lambda: open_outside_encoder("TEACH"),
    ):
        with pytest.raises(InputError) as error:
            read()
        assert str(error.value) == (
            "TEACH/teacher.json: written by an earlier development version;"
            " make the vectors again"
        )
    with pytest.raises(InputError, match=re.escape("lstm-dssm-teach --data")):
        TeacherVectors.open("none")


def test_vectors_of_python_are_checked():
    with pytest.raises(InputError, match="2 vectors and 2 texts, 1 of them"):
        TeacherVectors(["a b", "a  b"], np.eye(2))
    with pytest.raises(InputError, match="not finite"):
        TeacherVectors(["a"], np.array([[np.nan]]))


def test_the_program(collection_folder, capsys, refused):
    right = {"data": collection_folder, "encoder": SPEC, "output": "TEACH"}
    succeed(program, **right, json="teach.json")
    assert capsys.readouterr().out == (
        "wrote TEACH: 6 queries, 6 titles, vectors (12, 5)\n"
    )
    results = json.loads(pathlib.Path("teach.json").read_text())
    assert results["shape"] == [12, 5] and results["encoder"] == SPEC
    flags = [f"--data={collection_folder}", "--output=OTHER"]
    refused(program.program.run(["teach", *flags]), "--encoder is missing")
    flags = ["--data=none.tsv", f"--encoder={SPEC}", "--output=OTHER"]
    refused(program.program.run(["teach", *flags]), "no such file")
