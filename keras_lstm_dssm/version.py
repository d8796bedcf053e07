"""The version, which can be read without importing TensorFlow."""

__version__ = "0.3.0.dev0"
