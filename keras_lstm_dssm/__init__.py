"""LSTM-DSSM: trains query and document encoders on click logs.

    import keras_lstm_dssm as dssm

Importing the package registers its Keras classes, so that
`keras.saving.load_model` finds them in a fresh process.
"""

from keras_lstm_dssm.tensorflow_start import start_tensorflow

start_tensorflow()

# ruff: noqa: E402 (the backend is checked before Keras is used)
from keras_lstm_dssm.encoders import (
    BidirectionalLSTMEncoder,
    CLSMEncoder,
    CombinedEncoder,
    DSSMEncoder,
    LSTMEncoder,
    RNNEncoder,
    TextEncoder,
)
from keras_lstm_dssm.errors import FailedTraining, InputError
from keras_lstm_dssm.evaluation import Index, Mixture
from keras_lstm_dssm.layers import (
    LetterTrigrams,
    PeepholeLSTM,
    PeepholeLSTMCell,
    Recurrent,
    RNNCell,
    TrigramEmbedding,
)
from keras_lstm_dssm.models import (
    KEYVEC_PRESETS,
    PRESETS,
    SCORER_PRESETS,
    KeyVec,
    KeyVecRecipe,
    PairScorer,
    Recipe,
    ScorerRecipe,
    TwoTower,
)
from keras_lstm_dssm.ranker import Ranker
from keras_lstm_dssm.training import (
    Adagrad,
    CosineSoftmax,
    Distillation,
    KeyVecLoss,
    NesterovMomentum,
    NesterovSchedule,
    PairwiseHinge,
    RankingEvaluation,
    load_run,
    resume,
    train,
    train_ranker,
)
from keras_lstm_dssm.version import __version__

__all__ = [
    "KEYVEC_PRESETS",
    "PRESETS",
    "SCORER_PRESETS",
    "Adagrad",
    "BidirectionalLSTMEncoder",
    "CLSMEncoder",
    "CombinedEncoder",
    "CosineSoftmax",
    "DSSMEncoder",
    "Distillation",
    "FailedTraining",
    "InputError",
    "KeyVec",
    "KeyVecLoss",
    "KeyVecRecipe",
    "LSTMEncoder",
    "LetterTrigrams",
    "NesterovMomentum",
    "NesterovSchedule",
    "PairScorer",
    "PairwiseHinge",
    "PeepholeLSTM",
    "PeepholeLSTMCell",
    "RNNCell",
    "RNNEncoder",
    "Ranker",
    "Recurrent",
    "TextEncoder",
    "TrigramEmbedding",
    "TwoTower",
    "Index",
    "Mixture",
    "Recipe",
    "ScorerRecipe",
    "RankingEvaluation",
    "resume",
    "train",
    "train_ranker",
    "__version__",
    "load_run",
]
