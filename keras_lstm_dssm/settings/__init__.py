"""Each choice of a user, once: recipes, options, presets, kinds of models.

No module of this package imports TensorFlow, Keras, NumPy or a folder of the
package that does: flags are made from it before these are loaded.
"""
