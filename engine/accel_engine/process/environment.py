"""What TensorFlow and CUDA read from the environment when they are imported."""

import os
from pathlib import Path

from accel_engine.devices.tpu_chips import find_chips

ENVIRONMENT = {
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # so that CUDA counts GPUs as the driver's own tools do
    "TF_CPP_MIN_LOG_LEVEL": "1",
    # TensorFlow takes these faster kernels by itself only on CPUs with AVX-512. They were 1.3 to 3 times
    # as fast on one without it (benchmarks/README.md).
    "TF_ENABLE_ONEDNN_OPTS": "1",
}
"""What holds unless the user has set it."""


OFF_CLOUD = {"TPU_SKIP_MDS_QUERY": "1"}
"""The same where there is no TPU chip: libtpu would ask Google Cloud about them at its import, for minutes in vain."""


def prepare(root: Path = Path("/")) -> None:
    """Set up this process for an import of TensorFlow to come.

    Args:
        root: Of the file system that holds ``sys``, where TPU chips are looked for.
    """
    if not find_chips(root):
        os.environ |= {name: os.environ.get(name, value) for name, value in OFF_CLOUD.items()}
    os.environ |= {name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()}
    os.environ["KERAS_BACKEND"] = "tensorflow"
