"""Reads the report of a run of an older program, which only classifiers had: the row ``examined``.

Its body has the nonzero cells of the confusion matrix (indices as int32, then counts as int64) and the images.
"""

import math
from typing import Any

import numpy as np

from accel_engine.run.diagnostics.report_shapes import check_shapes
from accel_engine.run.diagnostics.reports import MAX_CLASSES, ClassificationReport, ValidationReport, stored_label
from accel_engine.run.diagnostics.views import Image
from accel_engine.stored_values import check_of, make


def unpack_examined(head: dict[str, Any], body: bytes) -> ValidationReport:
    """Unpack the report of an older program.

    Raises:
        KeyError: A value is missing.
        TypeError: A value has another form.
        ValueError: A value is wrong, or the body is too short.
    """
    classes, cells, shape = head["classes"], check_of(int)(head["cells"]), head["pictures"]
    counts = None
    if classes is not None:
        if not 0 < check_of(int)(classes) <= MAX_CLASSES:
            raise ValueError(f"it has {classes} classes")
        counts = np.zeros(classes * classes, np.int64)
        counts[np.frombuffer(body, "<i4", cells)] = np.frombuffer(body, "<i8", cells, 4 * cells)
        counts = counts.reshape(classes, classes)
    images = None if shape is None else np.frombuffer(body, np.uint8, offset=12 * cells).reshape(shape)
    worst = [
        {
            "row": each["row"],
            "loss": -math.log(max(each["chance"], 1e-7)),  # Keras' epsilon
            "input": None if images is None else Image(images[index]),
            "label": stored_label(each["label"]),
            "predicted": each["said"],
            "confidence": each["confidence"],
            "true_class_probability": each["chance"],
        }
        for index, each in enumerate(head["worst"])
    ]
    values = {name: head[name] for name in ("examples", "reason", "names")} | {"worst": worst, "counts": counts}
    report = make(ClassificationReport, values)
    check_shapes(report)
    return ValidationReport((report,))
