"""`make benchmark`: speed and memory of this package and of other libraries."""
