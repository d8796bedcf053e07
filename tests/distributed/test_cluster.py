"""Which processes train together, as TF_CONFIG says."""

import json

import pytest

from keras_lstm_dssm.distributed.cluster import Cluster
from keras_lstm_dssm.errors import InputError


def config(**changes: object) -> dict[str, str]:
    content = {
        "cluster": {"worker": ["a:1", "b:1", "c:1"]},
        "task": {"type": "worker", "index": 1},
        **changes,
    }
    return {"TF_CONFIG": json.dumps(content)}


def test_workers_and_rank_are_read():
    cluster = Cluster.from_environment(config())
    assert cluster == Cluster(("a:1", "b:1", "c:1"), 1)
    assert (cluster.size, cluster.first) == (3, False)
    assert cluster.describe(2) == "worker 2 (c:1)"


def test_shares_add_up():
    cluster = Cluster(("a:1", "b:1", "c:1"), 0)
    assert [cluster.share(8, rank) for rank in range(3)] == [3, 3, 2]


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"TF_CONFIG": "{"},
        {"TF_CONFIG": "[]"},
        config(task={"type": "worker", "index": 3}),
        config(task={"type": "ps", "index": 0}),
        config(cluster={"worker": ["a"]}),
        config(cluster={"worker": ["a:1", "b:1"], "ps": ["c:1"]}),
    ],
)
def test_wrong_ones_give_one_line(environment):
    with pytest.raises(InputError, match="expected the addresses") as error:
        Cluster.from_environment(environment)
    assert "\n" not in str(error.value)
