"""Loads the systems that the flag --mix names, and reads --mix_weights."""

from typing import Any

from absl import flags

from keras_lstm_dssm.distillation.teacher_vectors import open_outside_encoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import DenseSystem, System, system_of
from keras_lstm_dssm.evaluation.mixture import mixture_weights
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools.mixture_flags import BM25, MODEL, RESERVED


def check_mixture_flags(values: flags.FlagValues) -> dict[str, float] | None:
    """Checks `--mix` and returns the weights of `--mix_weights`.

    Args:
        values: The flags of the program.

    Returns:
        Name -> weight, of `model` and each system of `--mix`, with a sum of
        1; `None` without `--mix_weights`.

    Raises:
        InputError: A system is named twice, or by a name of the results;
            `--mix_weights` is no list of as many weights, or is given without
            `--mix`.
    """
    names = [MODEL, *values.mix]
    for name in values.mix:
        if names.count(name) > 1 or name in RESERVED:
            raise InputError(
                f"--mix: found {name!r}, which is named twice or is the name of"
                " a row of the results; the model of --run is always in it"
            )
    if values.mix_weights and not values.mix:
        raise InputError("--mix_weights is for --mix, which is missing")
    if not values.mix_weights:
        return None
    try:
        weights = [float(weight) for weight in values.mix_weights]
    except ValueError as error:
        raise InputError(
            f"--mix_weights={','.join(values.mix_weights)}: expected numbers"
            " separated by commas"
        ) from error
    try:
        return mixture_weights(names, weights)
    except InputError as error:
        raise InputError(f"--mix_weights: {error}") from error


def required_weights(values: flags.FlagValues) -> dict[str, float]:
    """Returns the weights of a program that cannot choose them on dev.

    Raises:
        InputError: See `check_mixture_flags`; or there is `--mix` without
            `--mix_weights`.
    """
    weights = check_mixture_flags(values)
    if weights is not None:
        return weights
    if values.mix:
        raise InputError(
            "--mix_weights is missing: give the weights that lstm-dssm-evaluate"
            " --mix has chosen on dev"
        )
    return {MODEL: 1.0}


def words_of(model: Any) -> str:
    """Returns the words that a model reads, a key of `TOKENIZERS`.

    Args:
        model: A model that ranks titles. One without words of its own, such
            as boosted trees over scores, has `"alphanumeric"`.
    """
    words = getattr(model, "words", None)
    if words is None and hasattr(model, "document_encoder"):
        words = model.document_encoder.trigrams
    split = "alphanumeric" if words is None else words.split
    return "stemmed" if split == "stems" else split


def load_titles_model(path: str) -> Any:
    """Loads the model of a run that ranks titles.

    Raises:
        InputError: There is no model, or it is a KeyVec.
    """
    model = RunFolder(path).load_model()
    if isinstance(model, KeyVec):
        raise InputError(
            f"{path}: found a KeyVec, which reads documents: expected the run"
            " of two towers or of a pair scorer"
        )
    return model


def load_part(name: str, bm25: System, **options: Any) -> Any:
    """Loads a system that `--mix` names.

    Args:
        name: `bm25`, the folder of a run, or an outside encoder, see
            `open_outside_encoder`.
        bm25: The system that `bm25` names.
        **options: See `system_of`, for runs.

    Returns:
        The system, a part of a `Mixture`.

    Raises:
        InputError: It is none of these.
    """
    if name == BM25:
        return bm25
    if _is_run(name):
        return system_of(load_titles_model(name), **options)
    try:
        encode = open_outside_encoder(name)
    except InputError as error:
        raise InputError(
            f"--mix: {name!r} is not {BM25}, nor the folder of a run, nor an"
            f" encoder that can be opened ({error})"
        ) from error
    return DenseSystem(encode, encode)


def _is_run(name: str) -> bool:
    """Returns whether a name is the folder of a run, not of an encoder."""
    folder = RunFolder(name)
    if folder.model.exists() or not folder.config.exists():
        return folder.model.exists()
    # Models of Hugging Face have a config.json, too.
    return "model_type" not in folder.read_config()


def weights_flag(weights: dict[str, float]) -> str:
    """Returns weights as the flag that gives them to another program."""
    return "--mix_weights=" + ",".join(f"{w:.10g}" for w in weights.values())
