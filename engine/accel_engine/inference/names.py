"""Names of the inputs and outputs of models that have none of their own."""

INPUT = "inputs"
"""The only input."""

OUTPUT = "outputs"
"""The only output, as the model computes it."""

PROBABILITIES, LABEL = "probabilities", "label"
"""The outputs of an exported classifier: the probability of each class, and the name of the most probable one."""
