"""The only uses of private names of TensorFlow, Keras, Optuna and Python: one module per library.

Each function says why no public name will do, and works without the private one. pyproject.toml bounds the versions.
"""
