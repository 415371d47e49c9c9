"""Groups metrics of several values, such as a score per class, into ranges."""

from collections.abc import Iterator, Mapping

from accel_engine.run.store.series_names import elements


def ranges(metrics: Mapping[str, float]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield each metric's name and value; for one with several values, the minimum and the maximum.

    Args:
        metrics: The values by series name.
    """
    elements_of = elements(metrics)
    metric_of = {name: metric for metric, names in elements_of.items() for name in names}
    yielded = set[str]()
    for name, value in metrics.items():
        metric = metric_of.get(name)
        if metric is None:
            yield name, (value,)
        elif metric not in yielded:
            yielded.add(metric)
            values = [metrics[one] for one in elements_of[metric]]
            yield metric, (min(values), max(values))
