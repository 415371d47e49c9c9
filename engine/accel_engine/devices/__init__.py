"""What hardware is here and how busy it is, without TensorFlow."""
