"""Folders that TF Serving reads: versions, configuration, warm-up, README."""
