"""What workers agree on outside of training steps: results and errors."""

from collections.abc import Callable
from typing import Any, TypeVar

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.workers.collectives import Collectives

T = TypeVar("T")


class JointError(InputError):
    """Raised on all workers, for what is wrong on one of them."""


def on_all(collectives: Collectives, function: Callable[[], Any]) -> list[Any]:
    """Calls a function on each worker, and returns the results of all of them.

    If a worker raises an error, all of them do: none waits for another that
    has stopped.

    Args:
        collectives: The workers.
        function: Returns what JSON can hold.

    Returns:
        The results, in the order of the ranks.

    Raises:
        JointError: A worker raised an `InputError` or an `OSError`.
    """
    outcome: dict[str, Any] = {}
    try:
        outcome["result"] = function()
    except InputError as error:
        outcome["error"] = str(error)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        outcome["error"] = f"{name}{error.strerror or error}"
    outcomes = collectives.gather_objects(outcome)
    for rank, each in enumerate(outcomes):
        if "error" in each:
            where = f"{collectives.cluster.describe(rank)}: " if rank else ""
            raise JointError(f"{where}{each['error']}")
    return [each["result"] for each in outcomes]


def on_each(collectives: Collectives, function: Callable[[], T]) -> T:
    """Calls a function on each worker, and returns its result on this one.

    Args:
        collectives: The workers.
        function: Returns anything.

    Raises:
        JointError: See `on_all`.
    """
    results: list[T] = []
    on_all(collectives, lambda: results.append(function()))
    return results[0]


def on_first(collectives: Collectives, function: Callable[[], Any]) -> Any:
    """Calls a function on worker 0 only, and gives its result to all.

    Args:
        collectives: The workers.
        function: See `on_all`.

    Raises:
        JointError: See `on_all`.
    """
    first = collectives.cluster.first
    return on_all(collectives, function if first else lambda: None)[0]


def check_equal(collectives: Collectives, values: dict[str, Any]) -> None:
    """Checks that all workers have been started alike.

    Args:
        collectives: The workers.
        values: What is compared -> its value on this worker.

    Raises:
        JointError: A worker has another value than worker 0.
    """
    cluster = collectives.cluster
    all_values = collectives.gather_objects(values)
    for rank, others in enumerate(all_values):
        for name in sorted({*others, *all_values[0]}):
            first, other = (each.get(name) for each in (all_values[0], others))
            if first != other:
                raise JointError(
                    f"{cluster.describe(rank)} has {name} {other}, "
                    f"{cluster.describe(0)} has {first}: start all workers "
                    "with the same"
                )
