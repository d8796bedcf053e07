"""All settings are in pyproject.toml; this file is for tools that run it."""

from setuptools import setup

setup()
