"""An export that is killed at any moment leaves the old models as they were.

tests/export/test_export_models.py kills one at two named moments.
"""

import pathlib
import subprocess
import time

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import Documents, export_models
from keras_lstm_dssm.export.publish.models_config import served_version
from keras_lstm_dssm.serving.saved_models import SavedEncoder, SavedRetriever
from tests.conftest import TOPICS
from tests.fresh_process import FreshProcesses
from tests.reliability.program import SETTINGS, train, write_log

TITLES = sorted({title for _, title in TOPICS.values()})
NAMES = ("query_encoder", "document_encoder", "retriever")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("run")
    log = write_log(folder / "clicks.tsv")
    flags = (
        f"--data={log}",
        *SETTINGS,
        "--epochs=4",
        f"--output={folder / 'run'}",
    )
    with train(*flags) as process:
        _, errors = process.communicate()
    assert process.returncode == 0, errors
    return folder / "run"


def answers(models: pathlib.Path) -> tuple[list[np.ndarray], list[str]]:
    """What the served versions of all models answer."""
    vectors = [SavedEncoder(models / n).encode(TITLES) for n in NAMES[:2]]
    hits = SavedRetriever(models / "retriever").search(TITLES, k=1)
    return vectors, [hit.id for (hit,) in hits]


@pytest.mark.slow
def test_killed_at_ten_moments(run, tmp_path, fresh_process: FreshProcesses):
    models, titles = tmp_path / "models", tmp_path / "titles.txt"
    titles.write_text("".join(f"{title}\n" for title in TITLES))
    small = dssm.TwoTower(dssm.RNNEncoder(3), dssm.RNNEncoder(3))
    export_models(small, models, Documents(TITLES, TITLES))
    before = answers(models)
    flags = ("export", f"--run={run}", f"--documents={titles}")
    start = time.monotonic()
    with fresh_process.program(*flags, f"--output={tmp_path / 'a'}") as process:
        assert process.wait() == 0
    seconds = time.monotonic() - start
    hidden = killed = 0
    for moment in range(10):
        with fresh_process.program(*flags, f"--output={models}") as process:
            try:
                process.wait(seconds * (moment + 0.5) / 10)
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate()
        if process.returncode == 0:  # it was faster than the first one
            assert moment > 5
            continue
        killed += 1
        hidden += bool([*models.glob("*/.publish-*")])
        for vectors, old in zip(answers(models)[0], before[0], strict=True):
            np.testing.assert_array_equal(vectors, old)
        assert answers(models)[1] == before[1]
    assert killed >= 6 and hidden >= 1
    with fresh_process.program(*flags, f"--output={models}") as process:
        assert process.wait() == 0
    assert not [*models.glob("**/.p*")]
    newest = {int(served_version(models / name).name) for name in NAMES}
    assert len(newest) == 1
    for vectors, expected in zip(
        answers(models)[0], answers(tmp_path / "a")[0], strict=True
    ):
        np.testing.assert_array_equal(vectors, expected)
