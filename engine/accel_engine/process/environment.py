"""What TensorFlow and CUDA read from the environment when they are imported."""

import os

ENVIRONMENT = {
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # so that CUDA counts GPUs as the driver's own tools do
    "TF_CPP_MIN_LOG_LEVEL": "1",
    # TensorFlow takes these faster kernels by itself only on CPUs with AVX-512. They were 1.3 to 3 times
    # as fast on one without it (benchmarks/README.md).
    "TF_ENABLE_ONEDNN_OPTS": "1",
}
"""What holds unless the user has set it."""


def prepare() -> None:
    """Set up this process for an import of TensorFlow to come."""
    os.environ |= {name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()}
    os.environ["KERAS_BACKEND"] = "tensorflow"
