"""Names of the fixtures of HTTP, for the tests in this folder."""

from tests.serving.conftest import Send, Served

__all__ = ["Send", "Served"]
