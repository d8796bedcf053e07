"""The public names of the package.

This module imports TensorFlow and all Keras classes of the package.
"""

from keras_lstm_dssm.tensorflow_start import start_tensorflow

start_tensorflow()

# ruff: noqa: E402 (the backend is checked before Keras is used)
from keras_lstm_dssm.callbacks import RankingEvaluation
from keras_lstm_dssm.data.prepare import load_data, prepare
from keras_lstm_dssm.encoders.combined_encoder import CombinedEncoder
from keras_lstm_dssm.encoders.feed_forward_encoders import (
    CLSMEncoder,
    DSSMEncoder,
)
from keras_lstm_dssm.encoders.layer_encoder import LayerEncoder
from keras_lstm_dssm.encoders.text_encoder import (
    BidirectionalLSTMEncoder,
    LSTMEncoder,
    RNNEncoder,
    TextEncoder,
)
from keras_lstm_dssm.errors import FailedTraining, InputError
from keras_lstm_dssm.evaluation.index import Index
from keras_lstm_dssm.evaluation.mixture import Mixture
from keras_lstm_dssm.export import export_models
from keras_lstm_dssm.layers.letter_trigrams import (
    LetterTrigrams,
    TrigramEmbedding,
)
from keras_lstm_dssm.layers.recurrent import PeepholeLSTM, Recurrent
from keras_lstm_dssm.layers.recurrent_cells import PeepholeLSTMCell, RNNCell
from keras_lstm_dssm.losses import CosineSoftmax, KeyVecLoss, PairwiseHinge
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
    build_model,
)
from keras_lstm_dssm.optimizers.adagrad import Adagrad
from keras_lstm_dssm.optimizers.nesterov_momentum import (
    NesterovMomentum,
    NesterovSchedule,
)
from keras_lstm_dssm.run_folder import load_run
from keras_lstm_dssm.training.train import resume, train
from keras_lstm_dssm.version import __version__

__all__ = [
    "Adagrad", "BidirectionalLSTMEncoder", "CLSMEncoder", "CombinedEncoder",
    "CosineSoftmax", "DSSMEncoder", "FailedTraining", "Index", "InputError",
    "KEYVEC_PRESETS", "KeyVec", "KeyVecLoss", "KeyVecRecipe", "LSTMEncoder",
    "LayerEncoder", "LetterTrigrams", "Mixture", "NesterovMomentum",
    "NesterovSchedule", "PRESETS", "PairScorer", "PairwiseHinge",
    "PeepholeLSTM", "PeepholeLSTMCell", "RNNCell", "RNNEncoder",
    "RankingEvaluation", "Recipe", "Recurrent", "SCORER_PRESETS",
    "ScorerRecipe", "TextEncoder", "TrigramEmbedding", "TwoTower",
    "__version__", "build_model", "export_models", "load_data", "load_run",
    "prepare", "resume", "train",
]  # fmt: skip
