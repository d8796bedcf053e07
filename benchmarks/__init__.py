"""The suites of `lstm-dssm-benchmark`: speed, memory and cost, beside peers."""
