"""The version of the package."""

__version__ = "0.3.0"

OLDEST = "0.3.0"
"""The oldest version whose runs and teacher folders can be read."""
