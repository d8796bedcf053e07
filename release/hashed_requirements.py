"""Writes a requirements file with the SHA-256 of each package's file.

pip resolves the requirements in pyproject.toml, with the extra `dev`.
constraints.txt pins the versions. pip's report names the file to install for
each package. The files depend on the version of Python and on the kind of
machine: run this program for each version and each kind of machine.

Example:
  python release/hashed_requirements.py build/requirements-hashed.txt
  pip install --require-hashes -r build/requirements-hashed.txt
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_PROJECT = "keras-lstm-dssm"


def requirement_lines(report: Mapping[str, Any]) -> list[str]:
    """Makes the sorted lines of the requirements file from pip's report."""
    lines = []
    for item in report["install"]:
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        name = name.lower().replace("_", "-").replace(".", "-")
        if name == _PROJECT:
            continue
        hashes = item["download_info"].get("archive_info", {}).get("hashes", {})
        if "sha256" not in hashes:
            sys.exit(f"error: {name} {version}: pip reports no SHA-256")
        lines.append(f"{name}=={version} --hash=sha256:{hashes['sha256']}")
    return sorted(lines)


def main(output: Path) -> int:
    """Gets a report from pip, and writes the requirements file."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        done = subprocess.run(
            [
                sys.executable, "-m", "pip", "install", "--quiet", "--dry-run",
                "--ignore-installed", "--report", str(report),
                "-c", "constraints.txt", ".[dev]",
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )  # fmt: skip
        if done.returncode:
            print(f"error: pip: {done.stderr.strip()}", file=sys.stderr)
            return 1
        lines = requirement_lines(
            json.loads(report.read_text(encoding="utf-8"))
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"wrote {output}: {len(lines)} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
