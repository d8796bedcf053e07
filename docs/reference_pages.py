"""Writes the pages of the reference, from public names and from flags.

Sphinx calls these functions through conf.py. The pages are written to
docs/generated, which is made anew by each build: one page for each subpackage
with public names (`__all__`), and one for each program, made from its
docstring and its flags.
"""

import importlib
import inspect
import re
import shutil
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

from lstm_dssm_programs import PROGRAMS
from keras_lstm_dssm.command_line import Program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest has it

HERE = Path(__file__).parent
GENERATED = HERE / "generated"
PACKAGE = "keras_lstm_dssm"

SUBPACKAGES = {
    "text": "strings to trigram ids",
    "layers": "layers of words and texts",
    "encoders": "texts to vectors",
    "matchers": "word vectors of two texts to a score",
    "losses": "the losses of the models",
    "optimizers": "Nesterov's momentum and Adagrad",
    "models": "two towers, pair scorers, KeyVec, and their recipes",
    "data": "click logs, judged collections, documents",
    "evaluate": "a run, as `lstm-dssm-evaluate` does",
    "evaluation": "rankings, measures, significance, BM25, mixtures",
    "callbacks": "the best epoch on dev",
    "run_folder": "the files of a run",
    "distillation": "vectors of other encoders to learn from",
    "training": "from clicks and documents to a run",
    "distributed": "several processes that train together",
    "export": "SavedModels for TF Serving",
    "serving": "a server and its clients",
    "analysis": "what a model represents",
    "papers": "the comparisons of the papers, and their baselines",
}

_EXAMPLES = ("Example:", "Examples:")

_EXAMPLE_DATA = """\
Examples
--------

The examples begin after these lines, and with the names of the module that
they are of. The tests run them. Where one needs what it does not make itself,
such as a trained `model`, it shows a call and what the result looks like.

.. code-block:: python

   from pathlib import Path

   import numpy as np

   import keras_lstm_dssm as dssm

The folders `parts` and `manuals` of some examples are written by

.. literalinclude:: ../../example_data.py
"""


def write(app: Any = None) -> None:
    """Writes all pages of the reference to docs/generated."""
    shutil.rmtree(GENERATED, ignore_errors=True)
    (GENERATED / "api").mkdir(parents=True)
    (GENERATED / "programs").mkdir()
    _write_api()
    _write_programs()


def programs() -> tuple[str, ...]:
    """Returns the names of the programs that pyproject.toml installs."""
    text = (HERE.parent / "pyproject.toml").read_text(encoding="utf-8")
    scripts = tomllib.loads(text)["project"]["scripts"]
    return tuple(name.removeprefix("lstm-dssm-") for name in scripts)


def _write_api() -> None:
    top = importlib.import_module(PACKAGE)
    pages = [PACKAGE]
    documented: dict[int, str] = {}
    _write_module(top, "the names most programs need", documented)
    modules = {f"{PACKAGE}.{n}": about for n, about in SUBPACKAGES.items()}
    modules["lstm_dssm_client"] = "the clients alone"
    for name, about in modules.items():
        _write_module(importlib.import_module(name), about, documented)
        pages.append(name)
    listed = "\n".join(f"   {name}" for name in pages)
    (GENERATED / "api" / "index.rst").write_text(
        f"{_title('Python API')}Every public name, by package; "
        "those of :doc:`keras_lstm_dssm` itself are listed there alone.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{listed}\n\n{_EXAMPLE_DATA}",
        encoding="utf-8",
    )


def _write_module(
    module: ModuleType, about: str, documented: dict[int, str]
) -> None:
    """Writes the page of a package: each name of `__all__`.

    A name in `documented`, id -> path on an earlier page, is a link to that
    page.
    """
    name = module.__name__
    text, linked = [], []
    for public in sorted(module.__all__, key=str.lower):
        value = getattr(module, public)
        if public.startswith("__"):
            continue
        if id(value) in documented:
            linked.append(f":py:obj:`~{documented[id(value)]}`")
            continue
        if inspect.isroutine(value) or isinstance(value, type):
            documented[id(value)] = f"{name}.{public}"
        text.append(_directive(f"{name}.{public}", value))
    head = [_title(f"{name}: {about}"), f".. automodule:: {name}\n"]
    if linked:
        head.append(f"Described on another page: {', '.join(linked)}.\n")
    path = GENERATED / "api" / f"{name}.rst"
    path.write_text("\n".join([*head, *text]), encoding="utf-8")


def _directive(path: str, value: Any) -> str:
    """Returns the directive that describes a public name."""
    if isinstance(value, type):
        return f".. autoclass:: {path}\n   :members:\n"
    if isinstance(value, ModuleType):
        return f".. automodule:: {path}\n   :members:\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {path}\n"
    if isinstance(value, dict | tuple | list | frozenset):
        values = ", ".join(f"``{key}``" for key in value)
    elif isinstance(value, str | int | float):
        values = f"``{value!r}``"
    else:  # an alias of types
        values = f"``{value}``".replace(f"{PACKAGE}.", "")
    return f".. py:data:: {path}\n\n   {values}\n"


def _write_programs() -> None:
    names = (*programs(), "demo")
    for name in names:
        program = importlib.import_module(PROGRAMS[name]).program
        path = GENERATED / "programs" / f"lstm-dssm-{name}.md"
        path.write_text(program_page(name, program), encoding="utf-8")
    rows = "\n".join(f"lstm-dssm-{name}" for name in names)
    (GENERATED / "programs" / "index.md").write_text(
        "# Programs\n\nEvery program has `--help`, `--flagfile=FILE` to "
        "read flags from, `--json=FILE` for its results, and `--debug`. Wrong "
        "input ends it with one line and exit code 1.\n\n"
        f"```{{toctree}}\n:maxdepth: 1\n\n{rows}\n```\n",
        encoding="utf-8",
    )


def program_page(name: str, program: Program) -> str:
    """Returns the page of a program in Markdown: its help and its flags."""
    title = f"lstm-dssm-{name}"
    if name == "demo":  # it is started from a clone only
        title = "make demo"
    text = f"# {title}\n\n{_prose(program.doc)}\n\n## Flags\n\n"
    text += "\n".join(_flag(program.flags[n]) for n in sorted(program.flags))
    settings = program.settings.flags
    if len(settings):
        text += "\n## Settings\n\nWhat `--set NAME=VALUE` may name:\n\n"
        text += "\n".join(_flag(settings[n], "") for n in sorted(settings))
    return text


def _flag(flag: Any, dashes: str = "--") -> str:
    """Returns the entry of a flag in a definition list of Markdown."""
    kind = flag.flag_type()
    choices = getattr(flag.parser, "enum_values", None)
    if flag.name == "set":
        form = "`--set NAME=VALUE`, repeated for further names"
    elif flag.boolean and dashes:
        form = f"`--{flag.name}`, `--no{flag.name}`"
    else:
        values = ["true", "false"] if flag.boolean else choices or [kind]
        form = f"`{dashes}{flag.name}={'|'.join(values)}`"
    default = flag.default
    if isinstance(default, list):
        default = ",".join(map(str, default))
    note = "" if default in (None, "") else f" Default: `{default}`."
    syntax = flag.parser.syntactic_help
    if syntax and not choices and not flag.boolean and "(" not in syntax:
        note += f" Expects {syntax}."
    text = " ".join(f"{flag.help}".split())
    return f"{form}\n: {_escape(text)}{note}\n"


def _prose(doc: str | None) -> str:
    """Returns a program's docstring as Markdown, indented parts as code."""
    lines = textwrap.dedent(doc or "").strip().splitlines()
    parts, code = [], []
    for line in [*lines, ""]:
        if line.startswith("  "):
            code.append(line)
            continue
        if code:
            block = textwrap.dedent("\n".join(code))
            parts += ["", "```sh", block, "```", ""]
            code = []
        parts.append(f"{line}\n" if line in _EXAMPLES else _escape(line))
    return "\n".join(parts)


def _escape(text: str) -> str:
    """Escapes what Markdown would read in prose, outside of back-ticks."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*_<>\[\]$])", r"\\\1", p) for p in parts[::2]]
    return "`".join(parts)


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def skip_member(
    app: Any, what: str, name: str, value: Any, skip: bool, options: Any
) -> bool | None:
    """Leaves out fields of named tuples, and members that are gRPC's."""
    doc = getattr(value, "__doc__", None) or ""
    module = getattr(value, "__module__", None) or ""
    if doc.startswith("Alias for field number") or module.startswith("grpc"):
        return True
    return None


def give_title(app: Any, docname: str, source: list[str]) -> None:
    """Gives a title to the tables that the programs have written."""
    match = re.fullmatch(r"results/(.+)/(table|robustness)", docname)
    if match:
        folder, kind = match.groups()
        about = {"table": "Table", "robustness": "Misspelled queries"}[kind]
        source[0] = f"---\norphan: true\n---\n# {about}: {folder}\n{source[0]}"
