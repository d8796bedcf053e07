"""What all programs share: arguments, required flags, help, results."""

import importlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from absl import flags

from keras_lstm_dssm.tools.program import new_flags, program

FLAGS = new_flags()
flags.DEFINE_string("model", None, "Folder of a model.", flag_values=FLAGS)
flags.DEFINE_integer("k", 5, "How many.", flag_values=FLAGS)
flags.DEFINE_integer("n", 1, "How often.", 1, flag_values=FLAGS)


def main(arguments: list[str]) -> dict[str, Any]:
    print("worked")
    return {"arguments": arguments, "k": FLAGS.k}


def one_line(capsys: pytest.CaptureFixture[str]) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ") and err.count("\n") == 1
    return err


def test_arguments_and_results(tmp_path: Path) -> None:
    run = program(main, FLAGS, "Help.", arguments=True)
    out = tmp_path / "out.json"
    assert run(["program", "bolt", "--k=2", "a\u00bd", f"--json={out}"]) == 0
    assert json.loads(out.read_text()) == {
        "arguments": ["bolt", "a\u00bd"],
        "k": 2,
    }
    assert run(["program", f"--json={out}"]) == 0  # flags are forgotten
    assert json.loads(out.read_text()) == {"arguments": [], "k": 5}


def test_an_argument_that_is_not_expected(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = program(main, FLAGS, "Help.")
    assert run(["program", "--k", "2", "b.tsv", "c.tsv"]) == 1
    assert "unexpected argument 'b.tsv'; quote globs" in one_line(capsys)


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("--k=many", "--k=many: expected an integer"),
        ("--n=0", "--n=0: expected a positive integer"),
        ("--kk=3", "Unknown command line flag 'kk'"),
    ],
)
def test_a_flag_of_another_kind(
    flag: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program(main, FLAGS, "Help.")(["program", flag]) == 1
    assert one_line(capsys).startswith(f"error: {expected}")


@pytest.mark.parametrize("given", [[], ["--model="]])
def test_a_required_flag(
    given: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run = program(main, FLAGS, "Help.", required=["model"])
    assert run(["program", *given]) == 1
    assert one_line(capsys) == "error: --model is missing: Folder of a model.\n"
    assert run(["program", "--model=m"]) == 0


def test_results_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = program(main, FLAGS, "Help.")
    path = tmp_path / "none" / "out.json"
    assert run(["program", f"--json={path}"]) == 1
    assert f"{path}: there is no folder" in one_line(capsys)


@pytest.mark.parametrize(
    "name",
    [
        "split", "train", "evaluate", "export", "encode", "search", "serve",
        "query", "benchmark", "table_iv", "analyze", "index",
    ],
)  # fmt: skip
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(f"keras_lstm_dssm.tools.{name}")
    assert module.run([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"\n  lstm-dssm-{name} --" in out.replace("    ", "  ")
    # A long command keeps its backslashes, and can be pasted.
    lines = out.partition("\nFlags:\n")[0].splitlines()
    for line, next_line in itertools.pairwise(lines):
        if next_line.startswith("      --"):
            assert line.endswith(" \\")
    if name not in ("search", "query"):
        assert module.run([name, "stray"]) == 1
        assert "unexpected argument 'stray'" in one_line(capsys)
