"""Programs, one in each module: train, evaluate, export, serve and others."""
