"""The version, which can be read without importing TensorFlow."""

__version__ = "0.2.0"
