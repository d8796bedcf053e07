"""A run of two worker processes matches that of one, with all of its flags."""

import json
import pathlib

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools.train import program
from tests.distributed.processes import free_addresses, start_worker
from tests.training.small_trainings import BEST

QUERIES, STEPS = 24, 12
COLORS = ("red", "tan", "sky", "gum")
THINGS = ("bolt", "lamp", "door", "hose", "nail", "wood")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    """Writes judged titles, clicks for `--validation`, a run for `--init`."""
    # Each query has one relevant title and one that is not: it does not depend
    # on the order of queries which negatives are drawn. The lines of the clicks
    # are of one length: each worker gets half of them.
    folder = tmp_path_factory.mktemp("runs")
    names = [f"{color} {thing}" for color in COLORS for thing in THINGS]
    judged = folder / "JUDGED"
    (judged / "qrels").mkdir(parents=True)
    for name, suffix in (("queries", ""), ("corpus", " two")):
        rows = [
            json.dumps({"_id": f"{number}", "text": f"{text}{suffix}"})
            for number, text in enumerate(names)
        ]
        (judged / f"{name}.jsonl").write_text("\n".join(rows))
    scores = ["query-id\tcorpus-id\tscore"]
    for number in range(QUERIES):
        scores += [f"{number}\t{number}\t1", f"{number}\t{23 - number}\t0"]
    for split in ("train", "dev"):
        (judged / "qrels" / f"{split}.tsv").write_text("\n".join(scores))
    clicks = [f"{name}\t{name} big\n" for name in names]
    (folder / "validation.tsv").write_text("".join(clicks[:7]))
    # With vectors of two numbers, of which some are almost zero, an error of
    # 1e-7 in the weights is one of 1e-3 in the loss after 12 steps.
    recipe = BEST.with_encoder(cells=8, bag=8).replace(
        title_pairs=0, hard_negatives=0, epochs=3
    )
    pairs = [tuple(line.strip().split("\t")) for line in clicks]
    dssm.train(pairs, recipe, output=folder / "PARENT", verbose=0)
    return folder


@pytest.mark.slow
def test_two_workers_continue_as_one_process(folder):
    """Trains with --init, --judged_negatives, logq, --validation, --dev."""
    flags = [
        f"--init={folder / 'PARENT'}", f"--data={folder / 'JUDGED'}",
        "--judged_negatives=1", "--set=logq=true", f"--batch_size={QUERIES}",
        f"--epochs={STEPS}", f"--validation={folder / 'validation.tsv'}",
        f"--dev={folder / 'JUDGED'}", "--select=mrr@10", "--patience=99",
    ]  # fmt: skip
    addresses = free_addresses(2)
    workers = [
        start_worker(
            addresses, rank, *flags, f"--output={folder / 'joint'}"
        )
        for rank in (0, 1)
    ]  # fmt: skip
    code = program.run(["train", *flags, f"--output={folder / 'alone'}"])
    assert code == 0
    for worker in workers:
        errors = worker.communicate(timeout=300)[1]
        assert worker.returncode == 0, errors
    joint, alone, parent = (
        RunFolder(folder / name) for name in ("joint", "alone", "PARENT")
    )
    init = alone.read_config()["init"]
    assert joint.read_config()["init"] == init
    assert init["path"] == str(parent.path)
    moved = 0.0
    for one, other, old in zip(
        *(run.load_model().get_weights() for run in (joint, alone, parent)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-5, rtol=0)
        moved = max(moved, abs(other - old).max())
    assert moved > 0.01
    rows = joint.read_history(), alone.read_history()
    assert len(rows[0]) == len(rows[1]) == STEPS
    for one, other in zip(*rows, strict=True):
        assert one.keys() == other.keys() and "dev_mrr@10" in one
        for name in ("loss", "val_loss", "dev_mrr@10"):
            assert one[name] == pytest.approx(other[name], rel=1e-4), name
