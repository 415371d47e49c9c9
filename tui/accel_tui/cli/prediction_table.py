"""Predictions as a table for a terminal."""

from accel_engine.requests.predict import ExamplePredictions
from accel_tui.cli.table import table
from accel_tui.predictions.rows import prediction_tables


def prediction_table(found: ExamplePredictions, top: int) -> str:
    """A table for each output, with the examples that have a prediction.

    Args:
        found: The predictions.
        top: Number of the most probable classes.
    """
    pages = []
    for each in prediction_tables(found, top):
        page = table(each.header, each.rows)
        pages.append(f"{each.output}\n{page}" if each.output else page)
    return "\n\n".join(pages)
