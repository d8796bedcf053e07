"""Skip-Thought (Kiros et al. 2015), trained on paragraphs."""

from keras_lstm_dssm.baselines.skip_thought.system import SkipThoughtSystem

__all__ = ["SkipThoughtSystem"]
