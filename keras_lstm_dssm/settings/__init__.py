"""All choices of users: recipes, options, presets and kinds of models.

No module here imports TensorFlow, Keras or NumPy: flags are parsed fast.
"""
