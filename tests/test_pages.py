"""What README and the pages of docs/ name exists: programs, flags, files."""

import importlib
import re
import shlex
from pathlib import Path
from string import Template
from typing import Any

import pytest

import lstm_dssm_programs
from benchmarks import __main__ as benchmark
from keras_lstm_dssm.papers import PAPERS, choose_rows
from keras_lstm_dssm.tools import train

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TEXTS = {
    path.relative_to(ROOT).with_suffix("").as_posix(): path.read_text()
    for path in (
        ROOT / "README.md", ROOT / "CONTRIBUTING.md",
        ROOT / "tests/reliability/README.md", ROOT / "findings/README.md",
        *sorted(DOCS.rglob("*.md")),
    )
    if DOCS / "generated" not in path.parents  # which `make docs` writes
}  # fmt: skip
PROGRAMS = [*lstm_dssm_programs.PROGRAMS]
BLOCK = re.compile(r"^ *(?:\$ )?(lstm-dssm-\w+ (?:.*\\\n)*.*)$", re.MULTILINE)
BENCHMARK = re.compile(r"make benchmark ARGS='([^']*)'")
INLINE = re.compile(r"`lstm-dssm-(\w+) ([^`]*--[^`]*)`")

SHOWN = {
    "README": "prepare train evaluate export search serve",
    "docs/scaling": "train encode export",
    "docs/shop": "prepare train evaluate export search serve teach",
    "docs/train": "train table",
    "docs/analysis": "analyze",
}
"""Page -> the programs that it must show, and no others."""

NUMBERS = {"README": 6, "docs/train": 3, "docs/analysis": 4}
"""Page -> the number of its commands; two or more if it is one of GUIDES."""

COMMON = {"flagfile", "help", "helpfull", "version"}
"""Flags that `Program` parses for all programs."""

GUIDES = (
    *("documents", "evaluate", "train", "rerank"),
    *("results/few_clicks", "results/keyvec/README", "results/mv_lstm/README"),
)

OTHERS = {
    # Of TensorFlow Serving.
    "docs/tf_serving": (
        "file_system_poll_wait_seconds"
        " model_config_file_poll_wait_seconds enable_batching"
        " allow_version_labels_for_unavailable_models model_config_file"
        " monitoring_config_file rest_api_port enforce_session_run_timeout"
        " enable_grpc_healthcheck_service enable_cors"
    ),
    "docs/serving": (
        "allow_version_labels_for_unavailable_models enable_batching"
        " model_config_file_poll_wait_seconds"
    ),
    "docs/security": "ssl_config_file",
}
"""Page -> the flags on it that are of no program of ours that it names."""


def program(name: str) -> Any:
    """Returns a program, whose flags can be parsed."""
    return importlib.import_module(lstm_dssm_programs.PROGRAMS[name]).program


def commands(page: str) -> list[list[str]]:
    """Returns the words of each command of our programs on a page.

    Variables have the page's values; those that end with "..." are left out."""
    text = TEXTS[page].replace(",\\\n", ",")  # a list on several lines
    values = dict(re.findall(r"^(\w+)=(\S+)$", text, re.M)) | {"rate": "0.01"}
    return [
        shlex.split(
            re.sub(
                r"\\\n|\(and [^)]*\)|# .*",
                "",
                Template(line).safe_substitute(values),
            )
        )
        for line in BLOCK.findall(text)
        if not line.endswith("...")
    ]


COMMANDS = {page: commands(page) for page in TEXTS}


def test_every_page_is_read():
    assert len(TEXTS) > 40
    assert sum(map(len, COMMANDS.values())) > 120


@pytest.mark.parametrize("page", [p for p, given in COMMANDS.items() if given])
def test_commands_are_understood(page, capsys):
    """Names and values of flags, recipes and rows of tables are right."""
    for name, *arguments in COMMANDS[page]:
        short = name.removeprefix("lstm-dssm-")
        code = program(short).check([name, *arguments])
        assert code is None, (arguments, capsys.readouterr().err)
        values = program(short).flags
        if short == "train" and not (values.init or values.resume):
            train.flagged_recipe()
        if short == "table":
            assert choose_rows(PAPERS[values.paper].rows, values.systems)


def test_benchmarks_are_understood(capsys):
    """The flags are right; each suite is in a command on some page."""
    suites: set[str] = set()
    for words in BENCHMARK.findall("".join(TEXTS.values())):
        code = benchmark.program.check(["benchmarks", *shlex.split(words)])
        assert code is None, (words, capsys.readouterr().err)
        suites |= {*benchmark.FLAGS.suite}
    assert suites == {*benchmark.SUITES}


@pytest.mark.parametrize("page", SHOWN)
def test_the_programs_that_a_page_shows(page):
    names = {words[0].removeprefix("lstm-dssm-") for words in COMMANDS[page]}
    assert names == set(SHOWN[page].split())


def test_how_many_commands_a_page_has():
    for page, number in NUMBERS.items():
        assert len(COMMANDS[page]) == number, page
    of_clicks = set(re.findall(r"--(\w+)", TEXTS["docs/train"]))
    assert of_clicks >= {
        "max_bad_lines", "oov_buckets", "init", "replay",
        "resume",
    }  # fmt: skip
    for page in GUIDES:
        assert len(COMMANDS[f"docs/{page}"]) >= 2, page


@pytest.mark.parametrize("page", TEXTS)
def test_flags_are_those_of_programs_that_the_page_names(page):
    text = TEXTS[page]
    names = set(re.findall(r"lstm-dssm-(\w+)", text)) & set(PROGRAMS)
    programs = [program(name) for name in names or PROGRAMS]
    flags = {flag for one in programs for flag in one.flags}
    if "make benchmark" in text:
        flags |= {*benchmark.FLAGS}
    flags |= {f"no{flag}" for flag in flags}
    flags |= COMMON
    unknown = set(re.findall(r"`--(\w+)", text)) - flags
    assert unknown == set(OTHERS.get(page, "").split())
    for name, rest in INLINE.findall(text):
        flags = {*program(name).flags, *COMMON}
        assert set(re.findall(r"--(\w+)", rest)) <= flags, (name, rest)
    settings = {s for one in programs for s in one.settings.flags}
    assert set(re.findall(r"--set ([a-z]\w*)", text)) <= settings


def test_tables_have_the_defaults_of_the_server():
    text = TEXTS["docs/security"] + TEXTS["docs/tf_serving"]
    found = re.findall(r"^\|.*?`--(?:set )?(\w+)=(\d+)`", text, re.M)
    names = {name for name, _ in found}
    assert {"max_message_mb", "max_rows", "versions", "poll_seconds"} <= names
    for name, value in found:
        assert program("serve").flag(name).default == float(value), name


@pytest.mark.parametrize("page", TEXTS)
def test_files_that_a_page_names_exist(page):
    """From the root or in the package; those without a folder anywhere."""
    written = re.findall(r"`([\w/.*-]+\.py)`", TEXTS[page])
    written += re.findall(
        r"`((?:tests|benchmarks|docs|release)/[\w/*-]+)`", TEXTS[page]
    )
    for name in set(written) - {"encoders.py"}:  # which the reader writes
        if "/" in name:
            roots = (ROOT, ROOT / "keras_lstm_dssm", DOCS, ROOT / "tests")
            assert any(any(root.glob(name)) for root in roots), name
        else:
            assert any(ROOT.glob(name)) or any(ROOT.glob(f"*/**/{name}")), name
    for image in re.findall(r"images/[\w.-]+", TEXTS[page]):
        assert (DOCS / image).is_file(), image


def test_no_picture_lies_unused():
    text = "".join(TEXTS.values())
    for picture in (DOCS / "images").iterdir():
        assert f"images/{picture.name}" in text


def test_paths_of_the_guide_for_contributors_exist():
    """From the root, or in the package, `export/` or `tests/`."""
    text = TEXTS["CONTRIBUTING"]
    names = set(re.findall(r"`((?:\w[\w-]*/)+[\w*]*(?:\.\w+)?)`", text))
    assert len(names) > 60
    # What `make docs` writes, and a folder of tests in a result of then.
    for name in names - {"build/docs", "serving/server"}:
        roots = (
            ROOT,
            *(ROOT / f for f in ("keras_lstm_dssm", "export", "tests")),
        )
        assert any(any(root.glob(name)) for root in roots), name


def test_each_finding_is_a_script_and_a_row():
    """The row names the versions that the head of the script has."""
    rows = dict(re.findall(
        r"^\| `([\w.]+)` \| ([^|]+) \|", TEXTS["findings/README"], re.M
    ))  # fmt: skip
    scripts = {path.name: path for path in ROOT.glob("findings/*.sh")}
    assert rows.keys() == scripts.keys()
    for name, path in scripts.items():
        head = path.read_text().splitlines()[1]
        for version in rows[name].split(", "):
            assert version in head, name
            package, number = version.split()
            assert f"{package}=={number}" in path.read_text(), name


def test_pages_that_name_many_files():
    """Of mathematics every equation's, and those that say what is tested."""
    for page, least in (
        ("mathematics", 20), ("results/performance", 20),
    ):  # fmt: skip
        names = re.findall(r"`[\w/]+/\w+\.py`", TEXTS[f"docs/{page}"])
        assert len(names) >= least, page
