"""The examples of docstrings run, and give what they print.

One that needs what it does not make (`model`, a server) ends where it lacks."""

import doctest
import importlib
import inspect
import pkgutil
import runpy
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import keras_lstm_dssm as dssm
import lstm_dssm_client
from keras_lstm_dssm.serving import ServingError
from tests.test_docs import DOCS, load

ILLUSTRATED = (NameError, dssm.InputError, FileNotFoundError, ServingError)

LONG = {
    "keras_lstm_dssm.encoders.activations.activations",
    "keras_lstm_dssm.encoders.combined_encoder.CombinedEncoder",
    "keras_lstm_dssm.distillation.outside_encoder.open_outside_encoder",
}

CLUSTER = "keras_lstm_dssm.distributed.on_ray.train_on_ray"
"""It starts a cluster before it finds that its clicks are missing."""

PARTS = sorted(
    {module.name for module in pkgutil.iter_modules(dssm.__path__)}
    | {"lstm_dssm_client"}
)


def modules(part: str) -> Iterator[ModuleType]:
    """Yields a part of the package, and all modules in it."""
    client = part == lstm_dssm_client.__name__
    name = part if client else f"{dssm.__name__}.{part}"
    top = importlib.import_module(name)
    yield top
    for module in pkgutil.walk_packages(
        getattr(top, "__path__", ()), f"{name}."
    ):
        yield importlib.import_module(module.name)


class Runner(doctest.DocTestRunner):
    """Ends an example without a failure where something is missing."""

    illustrated = False

    def run(self, test: doctest.DocTest, *args, **kwargs):
        self.illustrated = False
        return super().run(test, *args, **kwargs)

    def report_unexpected_exception(self, out, test, example, exc_info) -> None:
        if issubclass(exc_info[0], ILLUSTRATED):
            self.illustrated = True
        super().report_unexpected_exception(out, test, example, exc_info)


def examples(part: str, long: bool) -> tuple[int, list[str]]:
    """Runs the examples of a part: how many ran to the end, and failures."""
    names = {"dssm": dssm, "np": np, "Path": Path}
    finder = doctest.DocTestFinder(exclude_empty=True)
    options = (
        doctest.ELLIPSIS
        | doctest.FAIL_FAST
        | doctest.IGNORE_EXCEPTION_DETAIL
        | doctest.NORMALIZE_WHITESPACE
    )
    runpy.run_path(str(DOCS / "example_data.py"))
    done, failures, seen = 0, [], set()
    for module in modules(part):
        for test in finder.find(module, extraglobs=names):
            if (
                not test.examples
                or test.name == CLUSTER
                or test.name in seen
                or (test.name in LONG) != long
            ):
                continue
            seen.add(test.name)
            runner, lines = Runner(optionflags=options), []
            result = runner.run(test, out=lines.append)
            if not result.failed:
                done += 1
            elif not runner.illustrated:
                failures.append("".join(lines))
    return done, failures


@pytest.mark.parametrize("part", PARTS)
def test_examples_print_what_they_say(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done, failures = examples(part, long=False)
    assert not failures, "\n".join(failures)
    # Where most examples ran to the end when this was written.
    assert done >= {"data": 18, "layers": 17, "evaluation": 12}.get(part, 0)


def test_every_public_name_has_an_example():
    """Checks public functions and classes; constants need no example."""
    subpackages = load("reference_pages", "docs").SUBPACKAGES
    without = []
    for name in ("", *subpackages, "lstm_dssm_client"):
        path = name if name == "lstm_dssm_client" else f"{dssm.__name__}.{name}"
        module = importlib.import_module(path.rstrip("."))
        for public in module.__all__:
            value = getattr(module, public)
            if not (inspect.isroutine(value) or isinstance(value, type)):
                continue
            if typing.get_origin(value):  # list[str] is a type in Python 3.10
                continue
            if ">>> " not in (value.__doc__ or ""):
                without.append(f"{path}.{public}")
    assert without == []


@pytest.mark.slow
@pytest.mark.parametrize("part", sorted({name.split(".")[1] for name in LONG}))
def test_long_examples(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, failures = examples(part, long=True)
    assert not failures, "\n".join(failures)
