"""Skip-Thought (Kiros et al. 2015), trained on paragraphs of one's own."""

from keras_lstm_dssm.baselines.skip_thought.system import (
    NOTE,
    SkipThoughtSystem,
)

__all__ = ["NOTE", "SkipThoughtSystem"]
