"""Parts that actors of Ray Data write: equal to those of one process.

The test on a cluster starts Ray twice over (a head and a node), and each actor
imports TensorFlow: `pytest -m slow`.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.bulk import encode
from keras_lstm_dssm.export.bulk.encode import (
    PartEncoder,
    PartJob,
    encode_shard,
    encode_with_ray,
)
from keras_lstm_dssm.export.bulk.parts import EncodedParts
from keras_lstm_dssm.export.graphs.saved_module import saved_fingerprint
from keras_lstm_dssm.serving.saved_models import SavedEncoder
from keras_lstm_dssm.tools.encode import load_encoder
from tests.distributed.processes import ray_processes

ROWS, LINES = 41, 6

ENCODE = Path(__file__).parents[3] / "tools/encode.py"


@pytest.fixture
def job(tmp_path, monkeypatch) -> PartJob:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(encode, "LINES_AT_ONCE", 4)
    return new_job(tmp_path, ROWS, LINES)


def new_job(folder: Path, rows: int, lines: int) -> PartJob:
    """Titles in two files; the folder of the parts is made."""
    for name, some in (("a", range(rows // 3)), ("b", range(rows // 3, rows))):
        (folder / f"{name}.tsv").write_text(
            "".join(f"t{row}\ttitle {row} of {row % 7}\n" for row in some)
        )
    files = [str(folder / "a.tsv"), str(folder / "b.tsv")]
    (folder / "PARTS").mkdir()
    return PartJob(folder / "PARTS", files, lines, "parquet", "an encoder")


def whole(job: PartJob, model: Path, folder: Path) -> PartJob:
    """Encodes everything in this process."""
    folder.mkdir()
    one = job._replace(folder=folder)
    [*encode_shard(SavedEncoder(model).encode, one)]
    return one


def assert_equal(folder: Path, other: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    for name in names:
        assert (folder / name).read_bytes() == (other / name).read_bytes()


def test_an_actor_writes_the_parts_of_one_process(job, tiny_models, tmp_path):
    """In this process, without Ray; in the order in which they are assigned."""
    model = tiny_models / "query_encoder"
    one = whole(job, model, tmp_path / "one")
    actor = PartEncoder(partial(load_encoder, str(model)), job)
    assigned = [(1, 1), (1, 3), (0, 0), (1, 2), (1, 0), (0, 2), (0, 1), (1, 4)]
    for file_number, part in assigned:
        batch = {"file_number": np.array([file_number]), "part": [part]}
        result = actor(batch)
        assert result["error"].tolist() == [""]
        assert result["name"].tolist() == [f"part-{file_number:05}-{part:05}"]
    assert_equal(job.folder, one.folder)
    again = actor({"file_number": [0], "part": [1]})
    assert again["was_complete"].tolist() == [True]
    rows = EncodedParts(job.folder).read()
    assert rows.ids == [f"t{row}" for row in range(ROWS)]


def test_what_an_actor_cannot_do_is_one_line(job, tiny_models):
    model = partial(load_encoder, str(tiny_models / "query_encoder"))
    batch = {"file_number": [0], "part": [0]}
    for actor, message in (
        (PartEncoder(model, job, "0.0.1"), "expected 0.0.1 as in the start"),
        (PartEncoder(partial(load_encoder, "nothing"), job),
         "no SavedModel here"),
        (PartEncoder(model, job._replace(files=["gone.tsv"])),
         "part-00000-00000: gone.tsv: cannot be read"),
    ):  # fmt: skip
        (error,) = actor(batch)["error"].tolist()
        assert message in error and "\n" not in error
    assert not [*job.folder.iterdir()]
    pytest.importorskip("ray")
    with pytest.raises(InputError, match="nothing answers there"):
        [*encode_with_ray(model, job, 2, "127.0.0.1:1")]
    PartEncoder(model, job)(batch)
    other = PartEncoder(model, job._replace(encoder_sha256="other"))
    assert "another encoder" in other(batch)["error"].tolist()[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Ray itself warns of its own settings
def test_a_killed_actor_and_a_removed_node(tiny_models, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    for name in ("RAY_worker_niceness", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    model = tiny_models / "query_encoder"
    load = partial(load_encoder, str(model))
    job = new_job(tmp_path, 60_000, 1000)
    one = whole(job, model, tmp_path / "one")
    cluster = Cluster()
    try:
        _, second = (
            cluster.add_node(num_cpus=1, include_dashboard=False)
            for _ in range(2)
        )
        ray.init(address=cluster.address, log_to_driver=False)
        results = []
        for result in encode_with_ray(load, job, 2):
            results.append(result)
            if len(results) == 5:
                os.kill(
                    ray_processes(os.getpid(), "MapWorker")[0], signal.SIGKILL
                )
            if len(results) == 20:
                cluster.remove_node(second)
        assert len({result.name for result in results}) == 60
        assert_equal(job.folder, one.folder)
        # A second start keeps what is complete.
        for path in job.folder.glob("part-00001-0000*"):
            path.unlink()
        again = [*encode_with_ray(load, job, 1)]
        complete = [result.was_complete for result in again]
        assert (len(again), sum(complete)) == (60, 50)
        assert_equal(job.folder, one.folder)
        with pytest.raises(InputError, match="expected a CPU for each worker"):
            [*encode_with_ray(load, job, 64)]
    finally:
        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(job.folder)


@pytest.mark.slow
def test_a_killed_driver(tiny_models, tmp_path):
    """The same command keeps the parts that were complete."""
    pytest.importorskip("ray")
    model = tiny_models / "query_encoder"
    job = new_job(tmp_path, 60_000, 600)
    command = [
        sys.executable, ENCODE, "--workers=1",
        f"--saved_model={model}", f"--input={','.join(job.files)}",
        f"--output={job.folder}", f"--rows_per_file={job.lines}",
    ]  # fmt: skip
    driver = subprocess.Popen(command)
    while len(complete := [*job.folder.glob("*.json")]) < 5:
        assert driver.poll() is None
        time.sleep(0.01)
    times = {path: path.stat().st_mtime_ns for path in complete}
    driver.kill()
    assert driver.wait() == -signal.SIGKILL
    assert not (job.folder / "part-00001-00066.json").exists()
    again = subprocess.run(command, capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    match = re.search(r"101 parts, (\d+) of them complete", again.stdout)
    assert match and 5 <= int(match[1]) < 101, again.stdout
    for path, written in times.items():
        assert path.stat().st_mtime_ns == written
    fingerprint = saved_fingerprint(model)
    job = job._replace(encoder_sha256=fingerprint)
    assert_equal(job.folder, whole(job, model, tmp_path / "one").folder)
