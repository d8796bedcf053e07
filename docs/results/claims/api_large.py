"""Builds the API-search collection from the docstrings of 264 Python packages.

    pip install --no-deps --target=PACKAGES \
        --requirement=docs/results/claims/api_large.txt
    PYTHONPATH=. python docs/results/claims/api_large.py PACKAGES FOLDER

PACKAGES is only read, not imported. Beside it, the packages of this
environment are read (here, those of `make setup`, and this one, whose checkout
is the working folder), in the same way as `--data=api` reads those that this
package requires. FOLDER is a BEIR folder for `--data`.
"""

import sys
from importlib.metadata import Distribution, distributions

from keras_lstm_dssm.data.api_search import write_api_search


def build(packages: str, folder: str) -> None:
    """Writes the folder, and prints its sizes."""
    by_name: dict[str, Distribution] = {}
    for path in ([packages], sys.path):
        for distribution in distributions(path=path):
            name = distribution.metadata["Name"].lower().replace("_", "-")
            by_name.setdefault(name, distribution)
    found = [by_name[name] for name in sorted(by_name)]
    print(f"{len(found)} packages")
    print(write_api_search(folder, found).describe())


if __name__ == "__main__":
    build(*sys.argv[1:])
