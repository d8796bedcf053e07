"""What is wrong on one worker is an error of all of them."""

from typing import Any

from keras_lstm_dssm.distributed.collectives import (
    Cluster,
    JointError,
    check_equal,
    on_all,
)
from keras_lstm_dssm.distributed.worker import Workers
from keras_lstm_dssm.errors import InputError
from tests.distributed.threads import run_workers


def messages(results: list[Any]) -> set[str]:
    assert all(isinstance(result, JointError) for result in results), results
    return {str(result) for result in results}


def processes(collectives: Any) -> Workers:
    return Workers(collectives)


def test_shares_add_up():
    cluster = Cluster(("a:1", "b:1", "c:1"), 0)
    assert [cluster.share(8, rank) for rank in range(3)] == [3, 3, 2]


def test_results():
    results = run_workers(
        3, lambda workers: on_all(workers, lambda: 2 * workers.cluster.rank)
    )
    assert results == [[0, 2, 4]] * 3
    results = run_workers(
        2, lambda workers: processes(workers).on_each(lambda: workers.cluster)
    )
    assert [cluster.rank for cluster in results] == [0, 1]
    results = run_workers(
        2,
        lambda workers: processes(workers).on_first(
            lambda: workers.cluster.rank
        ),
    )
    assert results == [0, 0]


def test_an_error_of_one_is_raised_by_all():
    def work(workers: Any) -> None:
        def fail() -> None:
            if workers.cluster.rank == 1:
                raise InputError("clicks.tsv:3: found no tab")
            if workers.cluster.rank == 2:
                raise OSError(28, "No space left on device", "RUN/config.json")

        on_all(workers, fail)

    assert messages(run_workers(3, work)) == {
        "worker 1 (host1:1): clicks.tsv:3: found no tab"
    }

    def write(workers: Any) -> None:
        def fail() -> None:
            raise OSError(28, "No space left on device", "RUN/config.json")

        processes(workers).on_first(fail)

    assert messages(run_workers(2, write)) == {
        "RUN/config.json: No space left on device"
    }


def test_workers_that_were_started_differently():
    def work(workers: Any) -> None:
        version = "0.2.0" if workers.cluster.rank == 0 else "0.3.0"
        check_equal(workers, {"keras_lstm_dssm": version, "seed": 0})

    assert messages(run_workers(2, work)) == {
        "worker 1 (host1:1) has keras_lstm_dssm 0.3.0, worker 0 (host0:1) has "
        "0.2.0: install the same packages on all workers"
    }
