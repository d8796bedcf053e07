"""Distillation: clicks, and the cosines of a teacher, as one loss."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.registration import register
from keras_lstm_dssm.training.cosine_softmax import CosineSoftmax


@register
class Distillation(CosineSoftmax):
    """Adds the divergence from a teacher's order of titles to the clicks' loss.

    For a row, with cosines t of a teacher (an outside encoder) and R of the
    model between the row's query and the distinct titles of the batch:

        l = l_r + w KL(p || q),  p = softmax(t / T),  q = softmax(g_t R)
        KL(p || q) = sum over D of p(D) log(p(D) / q(D))

    l_r is the loss of `CosineSoftmax`. The softmaxes go over the titles that
    are not the row's own text, of which the teacher's cosine is 1 whatever
    its quality. Gradients reach the model only: dKL/dR(D) = g_t (q(D) - p(D)).
    Hinton et al. 2015, https://arxiv.org/abs/1503.02531.

    `TwoTower` adds the second term in training where a batch has the
    teacher's vectors (`TaughtBatches` adds them); in evaluations, and for
    other batches, the loss is that of `CosineSoftmax`. The loss of a batch is
    the mean over its rows.

    Args:
        gamma: Scale of the cosines in l_r. Default 10.
        weight: w, the weight of the divergence. Default 4.
        temperature: T, by which the teacher's cosines are divided; a smaller
            one leaves more of p to the nearest titles. Default 0.05.
        teacher_gamma: g_t, scale of the model's cosines in q. Default 16.
        name: Name of the loss.
        dtype: See `keras.losses.Loss`.

    Raises:
        InputError: `weight`, `temperature` or `teacher_gamma` is not a finite
            number above 0.

    Example:
    >>> loss = Distillation(gamma=16.0, weight=4.0)
    >>> model.compile(NesterovMomentum(0.03), loss)
    >>> model.fit(TaughtBatches(teacher, texts).attach(batches))
    """

    def __init__(
        self,
        gamma: float = 10.0,
        weight: float = 4.0,
        temperature: float = 0.05,
        teacher_gamma: float = 16.0,
        name: str = "distillation",
        dtype: Any = None,
    ) -> None:
        super().__init__(gamma, name=name, dtype=dtype)
        for argument, value in (
            ("weight", weight),
            ("temperature", temperature),
            ("teacher_gamma", teacher_gamma),
        ):
            if not 0 < value < float("inf"):
                raise InputError(
                    f"{argument} is {value!r}: expected a finite number above 0"
                )
        self.weight = weight
        self.temperature = temperature
        self.teacher_gamma = teacher_gamma

    def teacher_loss(self, teacher: tf.Tensor, cosines: tf.Tensor) -> tf.Tensor:
        """Returns the weighted mean of the rows' divergences, a scalar.

        Args:
            teacher: Cosines t, `(batch, titles)`; -inf for titles that are
                left out of the row.
            cosines: Cosines R of the model, `(batch, titles)`.
        """
        return self.weight * tf.reduce_mean(self.divergence(teacher, cosines))

    def divergence(self, teacher: tf.Tensor, cosines: tf.Tensor) -> tf.Tensor:
        """Returns KL(p || q) of each row, `(batch,)`; 0 without titles.

        Args:
            teacher: See `teacher_loss`.
            cosines: See `teacher_loss`.
        """
        cosines = tf.convert_to_tensor(cosines)
        teacher = tf.cast(teacher, cosines.dtype)
        least = cosines.dtype.min
        left_out = tf.math.is_inf(teacher)
        p = tf.nn.softmax(tf.where(left_out, least, teacher / self.temperature))
        p = tf.where(left_out, tf.zeros_like(p), p)
        scaled = tf.where(left_out, least, self.teacher_gamma * cosines)
        cross_entropy = tf.nn.softmax_cross_entropy_with_logits(p, scaled)
        entropy = -tf.reduce_sum(tf.math.xlogy(p, p), axis=-1)
        return tf.where(
            tf.reduce_all(left_out, axis=-1),
            tf.zeros_like(entropy),
            cross_entropy - entropy,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor arguments as a dict, for `from_config`."""
        config = super().get_config()
        del config["reduction"]  # always the mean
        return {
            **config,
            "weight": self.weight,
            "temperature": self.temperature,
            "teacher_gamma": self.teacher_gamma,
        }
