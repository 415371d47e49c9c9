"""Metrics in few words."""

from collections.abc import Iterator, Mapping

from accel_engine.run.series_names import elements


def ranges(metrics: Mapping[str, float]) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Give each metric's name and value; of one that has several, such as a score a class, the least and the largest.

    Args:
        metrics: Values by the name of their series.
    """
    several = elements(metrics)
    metric_of = {name: metric for metric, names in several.items() for name in names}
    told = set[str]()
    for name, value in metrics.items():
        metric = metric_of.get(name)
        if metric is None:
            yield name, (value,)
        elif metric not in told:
            told.add(metric)
            values = [metrics[one] for one in several[metric]]
            yield metric, (min(values), max(values))
