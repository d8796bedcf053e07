"""Which packages, and which of their files, the API-search corpus reads."""

import importlib.metadata
import os
import re
import sysconfig
from collections.abc import Iterator

from packaging.requirements import Requirement

from keras_lstm_dssm.errors import InputError

DISTRIBUTION = "keras-lstm-dssm"

# Tests, examples, copies of other packages, generated and internal code.
_NOT_API = re.compile(
    r"(^|/)(tests?|idlelib|lib2to3|turtledemo|site-packages|ensurepip"
    r"|distutils|pydoc_data|_?vendor(ed)?|_distutils|examples?|internal"
    r"|config-[^/]*|__phello__|lib-dynload|raw_ops|_tf_keras|__internal__"
    r"|tensorflow/(compiler|python/keras|python/debug)"
    r"|__main__\.py|(antigravity|this|setup|ntpath|nturl2path|conftest)\.py"
    r"|test_[^/]*\.py|[^/]*_(test|pb2|pb2_grpc)\.py)(/|$)"
)
_PUBLIC_TEST_FOLDERS = "tensorflow/_api/v2/test/"


def distributions() -> list[importlib.metadata.Distribution]:
    """Returns what this package requires, directly or not, without extras.

    Only these are read, so that the corpus is the same whatever else is
    installed.

    Raises:
        InputError: this package is not installed.
    """
    found: dict[str, importlib.metadata.Distribution] = {}
    wanted = [DISTRIBUTION]
    while wanted:
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            if name == DISTRIBUTION:
                raise InputError(
                    f"the package {name} is not installed, so its"
                    " requirements are not known: run pip install -e ."
                ) from None
            continue
        for line in found[name].requires or ():
            requirement = Requirement(line)
            marker = requirement.marker
            if marker is None or marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)
    del found[DISTRIBUTION]
    return [found[name] for name in sorted(found)]


def source_files(
    found: list[importlib.metadata.Distribution],
) -> Iterator[tuple[str, str]]:
    """Yields (path, path below its import root), in a fixed order."""
    root = sysconfig.get_path("stdlib")
    for folder, folders, names in os.walk(root):
        below = os.path.relpath(folder, root).removeprefix(".")
        folders[:] = sorted(
            name for name in folders if not _NOT_API.search(f"{name}/")
        )
        for name in sorted(names):
            place = os.path.join(below, name)
            if name.endswith(".py") and not _NOT_API.search(place):
                yield os.path.join(folder, name), place
    for distribution in found:
        for place in sorted(map(str, distribution.files or ())):
            if place.endswith(".py") and (
                not _NOT_API.search(place)
                or place.startswith(_PUBLIC_TEST_FOLDERS)
            ):
                yield str(distribution.locate_file(place)), place
