"""Timed comparisons with peers: what `lstm-dssm-benchmark` runs."""
