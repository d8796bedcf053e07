"""The suites of `lstm-dssm-benchmark`: speed, memory, cost, and peers."""
