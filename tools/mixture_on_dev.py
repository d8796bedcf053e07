"""The mixture that lstm-dssm-evaluate measures, with weights from dev."""

from typing import Any

from absl import flags

from keras_lstm_dssm.data import Collection, open_collection
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import (
    DenseSystem,
    Mixture,
    PairSystem,
    System,
    Task,
    choose_weights,
)
from keras_lstm_dssm.evaluation.systems import remembering
from keras_lstm_dssm.evaluation.task import MAIN_MEASURES
from keras_lstm_dssm.tools.mixture_flags import MODEL
from keras_lstm_dssm.tools.mixture_systems import (
    check_mixture_flags,
    load_part,
    weights_flag,
)

_DEV = "dev"


def mix_on_dev(
    values: flags.FlagValues,
    model: Any,
    bm25: System,
    collection: Collection,
    **options: Any,
) -> tuple[Mixture, dict[str, System], dict[str, Any]]:
    """Returns the mixture of `--mix`, and prints its weights.

    Args:
        values: The flags of lstm-dssm-evaluate.
        model: The system of the run's model.
        bm25: The system that `bm25` names.
        collection: The data of `--data`.
        **options: See `load_part`.

    Returns:
        The mixture; name -> part; and results: `mixture_weights`, name ->
        weight, and `mixture_dev`, which has the measure, its value with these
        weights, and `alone`, name -> its value of each part.

    Raises:
        InputError: A system cannot be loaded, or cannot search a corpus with
            `--mode=retrieve`; or the split to evaluate on would choose the
            weights.
    """
    weights = check_mixture_flags(values)
    if weights is None:
        dev = _dev_task(values, collection)
        measure = values.select or MAIN_MEASURES[values.mode]
    parts: dict[str, Any] = {MODEL: model}
    for name in values.mix:
        parts[name] = load_part(name, bm25, **options)
    for name, part in parts.items():
        if isinstance(part, PairSystem) and values.mode == "retrieve":
            raise InputError(
                f"--mix: {name} is a pair scorer, which only scores lists:"
                " use --mode=rerank, or leave it out"
            )
        if isinstance(part, DenseSystem):
            parts[name] = remembering(part)
    about: dict[str, Any] = {}
    if weights is None:
        chosen = choose_weights(parts, dev, measure)
        weights = chosen.weights
        about["mixture_dev"] = {
            measure: chosen.value, "alone": chosen.alone,
            "queries": len(dev.queries),
        }  # fmt: skip
        alone = ", ".join(
            f"{name} {100 * value:.2f}" for name, value in chosen.alone.items()
        )
        print(
            f"mixture: {measure} on the {len(dev.queries)} queries of dev"
            f" {100 * chosen.value:.2f} (alone: {alone})"
        )
    print(
        "mixture: "
        + ", ".join(f"{name} {weight:.3g}" for name, weight in weights.items())
        + f" ({weights_flag(weights)})"
    )
    return Mixture(parts, weights), parts, {"mixture_weights": weights, **about}


def _dev_task(values: flags.FlagValues, collection: Collection) -> Task:
    """Returns the queries that choose the weights."""
    dev = collection
    if values.dev:
        dev = open_collection(values.dev)
    elif values.split == _DEV:
        raise InputError(
            "--split=dev is what the weights of --mix would be chosen on: give"
            " --mix_weights, or another --split or --dev"
        )
    return Task.from_collection(
        dev, _DEV, values.mode, values.min_relevant, values.depth
    )
