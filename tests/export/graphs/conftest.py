"""Exports of each kind of model, made when a test asks for them."""

import functools
from collections.abc import Callable

import pytest

from tests.export.graphs.kinds import KINDS, Exported


@pytest.fixture(scope="session")
def exported(tmp_path_factory) -> Callable[[str], Exported]:
    """Returns the export of a kind; tests must not write into it."""

    @functools.cache
    def make(kind: str) -> Exported:
        return KINDS[kind](tmp_path_factory.mktemp(kind) / "models")

    return make
