"""Reads TensorBoard's files of histograms."""

from pathlib import Path

import numpy as np
import tensorflow as tf


def read_histograms(folder: Path) -> dict[tuple[str, int], np.ndarray]:
    """(tag, epoch) -> buckets `[n, (left, right, count)]`."""
    histograms = {}
    for file in folder.iterdir():
        for record in tf.data.TFRecordDataset(str(file)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                buckets = tf.make_ndarray(value.tensor)
                histograms[value.tag, event.step] = buckets
    return histograms
