"""Builds the wheel `lstm-dssm-client`: only the package `lstm_dssm_client`.

Run `pip wheel --no-deps ./client` in a clone of the repository.
"""

import pathlib
import re

from setuptools import setup

HERE = pathlib.Path(__file__).parent
VERSION = re.search(
    r'__version__ = "([^"]+)"',
    (HERE.parent / "keras_lstm_dssm" / "version.py").read_text(),
).group(1)

setup(
    version=VERSION,
    packages=["lstm_dssm_client"],
    package_dir={"lstm_dssm_client": "../lstm_dssm_client"},
    package_data={"lstm_dssm_client": ["py.typed"]},
)
