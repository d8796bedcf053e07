"""Fixtures that the tests of the exports share."""

from pathlib import Path

import pytest

from tests.serving.tiny_models import save_models


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models; tests must not write into it."""
    return save_models(tmp_path_factory.mktemp("tiny_models"))
