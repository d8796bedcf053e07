"""system_of: the system that ranks as a trained model does."""

from functools import partial
from typing import Any

from keras_lstm_dssm.evaluation.dense_system import DenseSystem
from keras_lstm_dssm.evaluation.document_task import document_sentences
from keras_lstm_dssm.evaluation.pair_system import PairSystem
from keras_lstm_dssm.evaluation.ranking import System


def system_of(
    model: Any, first_stage: System | None = None, **options: Any
) -> DenseSystem | PairSystem:
    """Returns the system that ranks as a model does.

    Args:
        model: A `TwoTower`, which ranks by the cosine of its vectors; a
            `PairScorer` or a `Ranker`, which rank by their scores; or a
            `KeyVec`, which ranks texts with one sentence on each line by the
            cosine of its vectors, and reads a query as any document.
        first_stage: System that finds the candidates of a `PairScorer` in a
            whole corpus, and those of a `Ranker` that reads no towers. Other
            rankers order the candidates of their first towers.
        **options: `batch_size` and `progress` of `TextEncoder.encode` or
            `PairScorer.score_pairs`; `progress` of `KeyVec.encode`.

    Example:
    >>> task = Task.from_collection(collection, "dev")
    >>> task.evaluate(task.run(system_of(model)))["mrr@10"]
    0.71
    """
    if hasattr(model, "score_pairs"):
        candidates = getattr(model, "candidates", None)
        if hasattr(model, "first_stage"):
            first_stage = model.first_stage(**options) or first_stage
        score_pairs = partial(model.score_pairs, **options)
        return PairSystem(score_pairs, first_stage, candidates)
    if not hasattr(model, "query_encoder"):
        encode = partial(model.encode, **options)
        return DenseSystem(
            encode, lambda texts: encode(list(map(document_sentences, texts)))
        )
    return DenseSystem(
        partial(model.query_encoder.encode, **options),
        partial(model.document_encoder.encode, **options),
    )
