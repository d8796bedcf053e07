"""Training: loss, optimizer, momentum schedule, mining, run folders."""

from keras_lstm_dssm.training.adagrad import Adagrad
from keras_lstm_dssm.training.cosine_softmax import CosineSoftmax
from keras_lstm_dssm.training.distillation import Distillation
from keras_lstm_dssm.training.document_examples import DocumentExamples
from keras_lstm_dssm.training.document_targets import DocumentTargets
from keras_lstm_dssm.training.fit_plan import fit_plan
from keras_lstm_dssm.training.hard_negatives import (
    HardNegatives,
    mine_negatives,
)
from keras_lstm_dssm.training.key_words import KeyWords
from keras_lstm_dssm.training.keyvec_loss import KeyVecLoss
from keras_lstm_dssm.training.nesterov_momentum import NesterovMomentum
from keras_lstm_dssm.training.nesterov_schedule import NesterovSchedule
from keras_lstm_dssm.training.pairwise_hinge import PairwiseHinge
from keras_lstm_dssm.training.ranker_training import train_ranker
from keras_lstm_dssm.training.ranking_evaluation import RankingEvaluation
from keras_lstm_dssm.training.ray_training import train_on_ray
from keras_lstm_dssm.training.run_folder import RunFolder, load_run
from keras_lstm_dssm.training.salience_teachers import salience_teacher
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors
from keras_lstm_dssm.training.train import resume, train
from keras_lstm_dssm.training.training_plan import TrainingPlan
from keras_lstm_dssm.training.tree_training import TreeOptions
from keras_lstm_dssm.training.triple_plan import TriplePlan
from keras_lstm_dssm.training.worker_settings import WorkerSettings
from keras_lstm_dssm.training.worker_training import LostWorker, train_worker

__all__ = [
    "Adagrad",
    "CosineSoftmax",
    "Distillation",
    "DocumentExamples",
    "DocumentTargets",
    "HardNegatives",
    "KeyWords",
    "KeyVecLoss",
    "LostWorker",
    "NesterovMomentum",
    "NesterovSchedule",
    "RankingEvaluation",
    "PairwiseHinge",
    "RunFolder",
    "TrainingPlan",
    "TreeOptions",
    "TriplePlan",
    "WorkerSettings",
    "fit_plan",
    "load_run",
    "mine_negatives",
    "resume",
    "salience_teacher",
    "skip_gram_vectors",
    "train",
    "train_on_ray",
    "train_ranker",
    "train_worker",
]
