"""Functions that the tests of all programs share."""

from collections.abc import Callable
from types import ModuleType

import pytest

Refused = Callable[[int, str], str]


@pytest.fixture
def refused(capsys) -> Refused:
    """Checks that a program ended with exit code 1 and one line that says why.

    It returns what the program printed before.
    """

    def check(code: int, message: str) -> str:
        printed, error = capsys.readouterr()
        assert code == 1
        assert message in error
        assert error.startswith("error: ") and error.count("\n") == 1, error
        return printed

    return check


def succeed(program: ModuleType, *words: str, **flags: object) -> None:
    """Runs a program with words and flags that are right."""
    given = [f"--{name}={value}" for name, value in flags.items()]
    assert program.run(["program", *given, *words]) == 0
