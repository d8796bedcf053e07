"""The package without what `keras_lstm_dssm` itself imports (TensorFlow)."""

BARE_PACKAGE = """
import importlib.util, sys, types
root = types.ModuleType("keras_lstm_dssm")
spec = importlib.util.find_spec("keras_lstm_dssm")
root.__path__ = spec.submodule_search_locations
sys.modules["keras_lstm_dssm"] = root
"""
"""Put before the code of a fresh process: sub-packages then import alone."""
