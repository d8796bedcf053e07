"""The help and the flags of each program; no TensorFlow is imported here."""
