"""Serves tools that run setup.py; all settings are in pyproject.toml."""

from setuptools import setup

setup()
