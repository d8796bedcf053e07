"""TensorFlow graphs of exported models, and their signatures."""
