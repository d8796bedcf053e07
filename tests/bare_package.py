"""Import modules of the package without its `__init__` and TensorFlow."""

BARE_PACKAGE = """
import importlib.util, sys, types
root = types.ModuleType("keras_lstm_dssm")
spec = importlib.util.find_spec("keras_lstm_dssm")
root.__path__ = spec.submodule_search_locations
sys.modules["keras_lstm_dssm"] = root
"""
"""Code that a fresh process runs before it imports modules of the package."""
