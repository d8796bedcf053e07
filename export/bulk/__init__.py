"""Reads, encodes and stores many documents: files, parts and shards."""
