"""Reads, encodes and stores many documents, in one or several processes."""
