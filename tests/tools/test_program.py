"""What all programs share: arguments, required flags, help, results."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

import lstm_dssm_programs
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.version import __version__


def new_program(**options: Any) -> tuple[Program, Callable[..., int]]:
    """Returns a program, and the function that runs it."""
    program = Program("Help.", **options)
    program.string("model", None, "Folder of a model.")
    program.integer("k", 5, "How many.")
    program.integer("n", 1, "How often.", 1)

    def main(arguments: list[str]) -> dict[str, Any]:
        print("worked")
        return {"arguments": arguments, "k": program.flags.k}

    return program, program.main(main)


def test_arguments_and_results(tmp_path):
    _, run = new_program(arguments=True)
    out = tmp_path / "out.json"
    assert run(["program", "bolt", "--k=2", "a\u00bd", f"--json={out}"]) == 0
    assert json.loads(out.read_text()) == {
        "arguments": ["bolt", "a\u00bd"],
        "k": 2,
    }
    assert run(["program", f"--json={out}"]) == 0  # flags are forgotten
    assert json.loads(out.read_text()) == {"arguments": [], "k": 5}


@pytest.mark.parametrize(("words", "message"), [
    (["--k=many"], "error: --k=many: expected an integer"),
    (["--n=0"], "error: --n=0: expected a positive integer"),
    (["--kk=3"], "error: Unknown command line flag 'kk'"),
    (["--k", "2", "b.tsv"], "unexpected argument 'b.tsv'; quote globs"),
    (["--model=m", "--json=none/o.json"], "none/o.json: there is no folder"),
    ([], "error: --model is missing: Folder of a model.\n"),
    (["--model="], "error: --model is missing: Folder of a model.\n"),
])  # fmt: skip
def test_what_is_refused_before_the_work(words, message, refused):
    _, run = new_program(required=["model"])
    assert refused(run(["program", *words]), message) == ""
    assert run(["program", "--model=m"]) == 0


@pytest.mark.parametrize("name", lstm_dssm_programs.program_names())
def test_help(name, capsys, refused):
    run = lstm_dssm_programs.find(name).run
    assert run([name, "--help"]) == 0
    out = capsys.readouterr().out
    # A long command keeps its backslashes, and can be pasted.
    lines = out.partition("\nFlags:\n")[0].splitlines()
    for line, next_line in itertools.pairwise(lines):
        if next_line.startswith("      --"):
            assert line.endswith(" \\")
    if name not in ("search", "query", "keys"):
        code = run([name, "stray"])
        assert refused(code, "unexpected argument 'stray'") == ""


@pytest.mark.parametrize("before", [[], ["--json=x.json"]])
@pytest.mark.parametrize("name", ["train", "query"])
def test_version(name, before, capsys):
    run = lstm_dssm_programs.find(name).run
    assert run([name, *before, "--version"]) == 0
    assert run([name, "--version", *before]) == 0
    assert capsys.readouterr().out == f"keras-lstm-dssm {__version__}\n" * 2


def test_a_flag_that_is_not_used(refused):
    program, _ = new_program()

    def main(_: list[str]) -> None:
        program.check_unused(["k", "n"], "is for others")

    run = program.main(main)
    assert run(["program", "--model=m"]) == 0
    code = run(["program", "--n=1"])
    assert refused(code, "error: --n is for others\n") == ""
