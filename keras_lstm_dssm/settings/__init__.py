"""Presets, choices and default values, in modules without TensorFlow.

The flags of the programs read them before TensorFlow is imported; the modules
that implement what is named here import them from here, too.
"""
