"""Hits are read from the outputs of a reply."""

import numpy as np

from lstm_dssm_client.signatures import hits_from_outputs


def test_columns_beyond_k_are_a_neighbours():
    """A server that batches pads each reply to the batch's largest k."""
    ids = np.array([[b"a", b"b", b"", b""], [b"c", b"", b"", b""]], object)
    scores = np.float32([[0.5, 0.25, -2, -2], [1, -2, -2, -2]])
    hits = [[("a", 0.5), ("b", 0.25)], [("c", 1.0)]]
    assert hits_from_outputs(ids, scores, 3) == hits
    assert hits_from_outputs(ids[:, :2], scores[:, :2], 3) == hits
    assert hits_from_outputs(ids, scores, 1) == [hits[0][:1], hits[1]]
