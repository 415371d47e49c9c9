"""The terminal user interface and command line of accel-tui; it never imports TensorFlow."""
