"""The programs, one in a module: train, evaluate, export, serve and others."""
