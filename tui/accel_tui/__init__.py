"""Shows and asks: the terminal side of accel-tui. It never imports TensorFlow."""
