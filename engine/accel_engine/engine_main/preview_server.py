"""Answers requests for previews of data."""

from accel_engine.data_profile.described_data import DescribedData, describe_loaded
from accel_engine.requests.preview_data import PreviewRequest
from accel_engine.requests.protocol.request import Send, reports


def answer_preview(request: PreviewRequest, send: Send) -> DescribedData:
    """Describe the data of a plan for a form, in an engine process.

    Raises:
        AccelError: The data cannot be read.
    """
    return describe_loaded(request.plan.data, request.plan.data_options, progress=reports(send))
