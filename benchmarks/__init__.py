"""`make benchmark`: speed and memory, also of peers in other libraries."""
