"""Examples of files, and how long reading one may take."""

import asyncio
import threading
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import soundfile

from accel_engine.data.data_options import ColumnFormat
from accel_engine.model_server.access import ServerAccess
from accel_engine.model_server.application import PARSERS, ServingState
from accel_engine.model_server.files import FileExamples, predictions, read_file
from accel_engine.model_server.metrics import ServerMetrics
from accel_engine.model_server.request_error import RequestError
from accel_engine.model_server.served_model import Limits
from accel_engine.model_server.service import Meaning, ServedModelFile, Service, Tensor, UploadForm


def test_a_category_that_training_has_not_seen_is_told() -> None:
    columns = (ColumnFormat("city", "category"), ColumnFormat("age", "number"))
    service = Service(
        name="shops",
        model=ServedModelFile("onnx", "none", "model.onnx", 1e-3),
        inputs=(Tensor("city", (1,), "string"), Tensor("age", (1,), "float32")),
        outputs=(Tensor("values", (1,), "float32"),),
        files=UploadForm("table", columns=columns, categories={"city": ("Rome", "Oslo")}),
    )
    found = read_file(b"city,age\nParis,3\n", "new.csv", "", service)
    assert found.inputs["city"].tolist() == [["Paris"]]
    assert found.notes == ("1 value of column city not in the training data, such as 'Paris': taken as other values",)
    known = read_file(b"city,age\nRome,3\n,\n", "new.csv", "", service)
    np.testing.assert_array_equal(known.inputs["age"], np.array([[3], [np.nan]], np.float32))
    assert known.notes == ()


def test_outputs_that_are_not_finite_are_no_prediction() -> None:
    service = Service(
        name="shops",
        model=ServedModelFile("onnx", "none", "model.onnx", 1e-3),
        inputs=(Tensor("age", (1,), "float32"),),
        outputs=(Tensor("probabilities", (2,), "float32"),),
        files=UploadForm("table", columns=(ColumnFormat("age", "number"),)),
        meanings=(Meaning("probabilities", "", "classification", ("low", "high")),),
    )
    examples = FileExamples(["1", "2", "3"], {}, {0: "unreadable"})
    found = predictions(examples, {"probabilities": np.array([[np.nan, np.nan], [0.25, 0.75]], np.float32)}, service)
    assert [each["problem"] for each in found] == ["unreadable", "the model's outputs for 2 are not finite", ""]
    assert [each.get("label") for each in found] == [None, None, "high"]


def test_a_long_sound_is_predicted_by_the_mean_of_its_windows() -> None:
    service = Service(
        name="tones",
        model=ServedModelFile("onnx", "none", "model.onnx", 1e-3),
        inputs=(Tensor("x", (100, 1), "float32"),),
        outputs=(Tensor("values", (1,), "float32"),),
        files=UploadForm("audio", sample_rate=800, window=100),
    )
    content, sound = BytesIO(), np.linspace(-0.5, 0.5, 250)
    soundfile.write(content, sound, 800, format="WAV", subtype="FLOAT")
    found = read_file(content.getvalue(), "a.wav", "", service)
    np.testing.assert_allclose(found.inputs["x"][..., 0], [sound[:100], sound[100:200], sound[150:]], rtol=1e-5)
    outputs = {"values": np.array([[1], [2], [6]], np.float32)}
    assert predictions(found, outputs, service) == [{"example": "a.wav", "problem": "", "values": [3.0]}]
    cut = replace(service, files=replace(service.files, window=0))
    assert read_file(content.getvalue(), "a.wav", "", cut).inputs["x"].shape == (1, 100, 1)


def test_reading_a_body_has_a_time_limit() -> None:
    state = ServingState(Limits(seconds=0.05), ServerAccess(), ServerMetrics())
    may_end = threading.Event()

    async def read_slowly() -> None:
        for _ in range(PARSERS + 1):  # the last one finds no thread
            with pytest.raises(RequestError, match=r"could not be read within 0\.05 s") as raised:
                await state.in_thread(may_end.wait)
            assert raised.value.status == 504
        may_end.set()

    asyncio.run(read_slowly())
    assert 'model_server_rejected_total{reason="parsing"} 5.0' in state.metrics.text().decode()
