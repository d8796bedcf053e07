"""Runs the tests with several versions of Python and of the requirements.

`nox -l` lists the sessions. A version of Python that is not installed is
skipped. The word in parentheses selects the versions of the requirements.
`oldest` installs the lowest version of each direct requirement that
pyproject.toml allows. `newest` installs the latest allowed versions. `pinned`
installs the versions in constraints.txt.

Example:
  nox -s "tests-3.12(newest)" -- -k recipe
"""

import sys
from pathlib import Path

import nox
from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # a requirement of nox

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
PACKAGES = ("oldest", "newest", "pinned")

nox.options.sessions = [f"tests-{version}(newest)" for version in PYTHONS]
nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False


def lowest(path: str = "pyproject.toml") -> list[str]:
    """Returns a pin for each bound `>=` of the package and its extras."""
    project = tomllib.loads(Path(path).read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    pins = {}
    for text in sum(extras, project["dependencies"]):
        requirement = Requirement(text)
        for part in requirement.specifier:
            if part.operator == ">=":
                pins[requirement.name] = f"{requirement.name}=={part.version}"
    return sorted(pins.values())


@nox.session(python=PYTHONS)
@nox.parametrize("packages", [nox.param(name, id=name) for name in PACKAGES])
def tests(session: nox.Session, packages: str) -> None:
    """Installs the package with its development extras, and runs the tests."""
    options = ["--upgrade"]
    if packages == "pinned":
        options = ["-c", "constraints.txt"]
    if packages == "oldest":
        pins = Path(session.create_tmp(), "oldest.txt")
        pins.write_text("\n".join(lowest()) + "\n", encoding="utf-8")
        options = ["-c", str(pins)]
    session.install(*options, "-e", ".[dev]")
    arguments = session.posargs or ["-n", "2", "--dist", "worksteal"]
    session.run("python", "-m", "pytest", *arguments)
