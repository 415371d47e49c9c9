"""Training: building a plan's model and taking its steps. Only the engine process imports this package.

It is here, and in the builders of ``models``, ``data`` and ``strategies``, that TensorFlow is imported.
"""
