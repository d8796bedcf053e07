"""The version, readable without importing anything heavy."""

__version__ = "0.2.0"
