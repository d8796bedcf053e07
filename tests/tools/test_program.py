"""What all programs share: arguments, required flags, help, results."""

import importlib
import importlib.util
import itertools
import json
from importlib import import_module
from typing import Any

import pytest

import lstm_dssm_programs
from keras_lstm_dssm.command_line import Program
from keras_lstm_dssm.version import __version__


def program(name: str) -> Program:
    """Returns one of the programs."""
    return import_module(lstm_dssm_programs.PROGRAMS[name]).program


def new_program(**options: Any) -> Program:
    """Returns a program that prints that it worked."""
    program = Program("Help.", **options)
    program.string("model", None, "Folder of a model.")
    program.integer("k", 5, "How many.")
    program.integer("n", 1, "How often.", 1)
    program.bool("fast", False, "Whether it is fast.")

    @program.main
    def main(argv: list[str]) -> dict[str, Any]:
        print("worked")
        return {"arguments": argv[1:], "k": program.flags.k}

    return program


def test_arguments_and_results(tmp_path):
    run = new_program(arguments=True).run
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
    (["--kk=3"], "error: --kk is no flag: is --k meant?"),
    (["--k", "2", "b.tsv"], "unexpected argument 'b.tsv'; quote globs"),
    (["--model=m", "--json=none/o.json"], "none/o.json: there is no folder"),
    (["--k=1", "--k=2"], "--k is given twice, 1 and 2: leave one out"),
    (["--model=a", "--model=b"], "--model is given twice, a and b: leave one"),
    (["--fast", "--nofast"], "--fast is given twice, True and false: leave"),
    (["--nofast=true"], "--nofast=true does not take an argument: leave out"),
    (["--k"], "error: Missing value for flag --k"),
    (["--flagfile=none"], "none"),
    ([], "error: --model is missing: Folder of a model.\n"),
    (["--model="], "error: --model is missing: Folder of a model.\n"),
])  # fmt: skip
def test_what_is_refused_before_the_work(words, message, refused):
    run = new_program(required=["model"]).run
    assert refused(run(["program", *words]), message) == ""
    assert run(["program", "--model=m"]) == 0


@pytest.mark.parametrize("name", lstm_dssm_programs.PROGRAMS)
def test_help(name, capsys, refused):
    run = program(name).run
    assert run([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert run([name, "--helpshort"]) == 0
    assert capsys.readouterr().out == out
    assert run([name, "--helpfull"]) == 0
    names, settings = capsys.readouterr().out, program(name).settings.flags
    assert names.removeprefix(out[:-1]).count("\n  ") >= len(settings)
    assert all(f"\n  {setting}: " in names for setting in settings)
    # A long command keeps its backslashes, and can be pasted.
    lines = out.partition("\nFlags:\n")[0].splitlines()
    for line, next_line in itertools.pairwise(lines):
        if next_line.startswith("      --"):
            assert line.endswith(" \\")
    if name != "search":
        code = run([name, "stray"])
        assert refused(code, "unexpected argument 'stray'") == ""


@pytest.mark.parametrize("before", [[], ["--json=x.json"]])
@pytest.mark.parametrize("name", ["train", "search"])
def test_version(name, before, capsys):
    run = program(name).run
    assert run([name, *before, "--version"]) == 0
    assert run([name, "--version", *before]) == 0
    assert capsys.readouterr().out == f"keras-lstm-dssm {__version__}\n" * 2


def test_a_flag_that_is_not_used(refused):
    program = new_program()

    @program.main
    def main(_: list[str]) -> None:
        program.check_unused(["k", "n"], "is for others")

    assert program.run(["program", "--model=m"]) == 0
    code = program.run(["program", "--n=1"])
    assert refused(code, "error: --n is for others\n") == ""


def test_flags_from_a_file(tmp_path, capsys, refused):
    """A flag of the file that is given beside it, too, is given twice."""
    file = tmp_path / "flags"
    file.write_text("# the model\n--model=m\n--k=3\n")
    program = new_program(required=["model"])
    assert program.run(["program", f"--flagfile={file}"]) == 0
    assert (program.flags.model, program.flags.k) == ("m", 3)
    code = program.run(["program", f"--flagfile={file}", "--k=4"])
    assert refused(code, "--k is given twice, 3 and 4") == "worked\n"


def with_settings() -> Program:
    program = new_program()
    program.define_set("A size")
    program.settings.integer("height", 3, "Height.", 1)
    program.settings.float("width", None, "Width.", 0.0)
    program.settings.bool("deep", True, "Depth.")
    program.settings.list("parts", [], "Parts.")
    return program


def test_settings_have_the_types_of_flags(capsys):
    program = with_settings()
    words = ["height=4", "deep=false", "width=0.5", "parts=a,b"]
    given = [word for text in words for word in ("--set", text)]
    assert program.run(["program", *given, "--k=2"]) == 0
    found = {name: program.flag(name).value for name in program.settings.flags}
    expected = {"height": 4, "width": 0.5, "deep": False, "parts": ["a", "b"]}
    assert found == expected
    assert (program.flag("k").value, program.shown("k")) == (2, "--k")
    assert program.shown("width") == "--set width"
    assert program.run(["program"]) == 0  # settings are forgotten
    found = {name: program.flag(name).value for name in program.settings.flags}
    assert found == {"height": 3, "width": None, "deep": True, "parts": []}


@pytest.mark.parametrize(("words", "message"), [
    ("hight=4", "--set hight=4: expected NAME=VALUE with the name height, or"),
    ("x=4", "--set x=4: expected NAME=VALUE with a name that --helpfull lists"),
    ("height", "--set height: expected NAME=VALUE with the name height, or"),
    ("k=4", "--set k=4: k has a flag: give --k=4"),
    ("set=k", "--set set=k: expected NAME=VALUE with a name that"),
    ("height=0", "--set height=0: expected a positive integer"),
    ("deep=no thanks", "--set deep=no thanks: "),
    ("height=4; height=5", "--set height is given twice, 4 and 5: leave one"),
])  # fmt: skip
def test_wrong_settings(words, message, refused):
    given = [f"--set={word}" for word in words.split("; ")]
    assert refused(with_settings().run(["program", *given]), message) == ""


@pytest.mark.parametrize(("name", "flags", "module", "extra"), [
    ("analyze", "--run=R --output=x.html", "matplotlib", "analysis"),
    ("evaluate", "--run=R --data=D --bm25_words=stemmed", "snowballstemmer",
     "baselines"),
    ("serve", "--models=M --http_port=0", "uvicorn", "http"),
    ("table", "--paper=table_iv --data=D --output=O", "gensim", "baselines"),
])  # fmt: skip
def test_a_missing_extra_is_named_before_anything_is_read(
    name, flags, module, extra, monkeypatch, refused, tmp_path
):
    """The error names the extra, though the named folders do not exist."""
    monkeypatch.chdir(tmp_path)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec",
        lambda wanted, *more: None if wanted == module else find(wanted, *more),
    )  # fmt: skip
    program = importlib.import_module(f"keras_lstm_dssm.tools.{name}").program
    message = f'{module} is not installed: pip install "keras-lstm-dssm[{extra}'
    refused(program.run([name, *flags.split()]), message)
