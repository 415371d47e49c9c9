"""Measured figures of the estimate of memory, each with its smallest and its largest value.

From the peak resident memory of trainings on a CPU, compared with a process that only imported TensorFlow: see
``benchmarks/README.md``, whose table ``benchmarks/memory.py`` repeats.
"""

MIB = 1 << 20

TENSORFLOW = (505 * MIB, 530 * MIB)
"""Bytes of a process that has imported TensorFlow and Keras, and built nothing."""

GRAPH = (45 * MIB, 95 * MIB)
"""Bytes that a process takes besides, whatever it trains."""

OPERATION = (24 * MIB // 1000, 42 * MIB // 1000)
"""Bytes per operation of a step's graph: the graph, its copies and its compiled kernels."""

STATE_COPIES = (0.75, 1.9)
"""Copies of weights, gradients and optimizer state, as parts of them: while weights are initialized and updated, and
while checkpoints and the model are written."""

XLA = (70 * MIB, 200 * MIB)
"""Bytes of XLA's compiler and program, besides :data:`XLA_OPERATION`."""

XLA_OPERATION = (0, 195 * MIB // 1000)
"""Bytes of them per operation of a step's graph. ``mlp`` took 74 to 108 MiB more, ``vit`` 306, ``MobileNetV2``
about 990 more than the estimate without it."""

SAVED = (1.0, 1.4)
"""Share of the saved activations: not all are freed as soon as they could be."""

LARGEST = (1.0, 1.5)
"""Share of the largest activation: its gradient, and the workspace of the operations on it."""

DATA = (1.5, 4.0)
"""Copies of cached data: as it is read, converted and cached."""

UNTRACED = (0.57, 3.7)
"""The same as :data:`SAVED` where only the outputs of layers are known: the models of the catalogue save 0.57 to 2.62
times these, recurrent ones excepted, which save up to 15 times their output."""
