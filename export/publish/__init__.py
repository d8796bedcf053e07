"""Writes the folders that TF Serving reads: versions and configuration."""
