"""Each choice of a user, once: recipes, options, presets, names and limits.

No module of this package imports TensorFlow, Keras or NumPy at its top: flags
are made from it before these are loaded.
"""
