"""Command-line programs, one file each: train, evaluate, export, serve..."""
