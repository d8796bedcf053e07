"""All choices that users make: recipes, options, presets, kinds of models.

No module here imports TensorFlow, Keras or NumPy, so flags are parsed fast.
"""
