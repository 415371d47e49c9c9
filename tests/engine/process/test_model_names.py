"""Models of one request have names that tell them apart."""

from pathlib import Path

from accel_engine.process.inference_bench import distinct_names


def names(*paths: str) -> list[str]:
    return distinct_names(list(map(Path, paths)))


def test_a_name_has_as_much_of_the_path_as_is_needed() -> None:
    assert names("/a/m.onnx", "/a/n.onnx") == ["m.onnx", "n.onnx"]
    assert names("/a/old/m.onnx", "/a/new/m.onnx", "/a/n.onnx") == ["old/m.onnx", "new/m.onnx", "n.onnx"]
    assert names("/a/x/m.onnx", "/b/x/m.onnx") == ["a/x/m.onnx", "b/x/m.onnx"]
    assert names("/m.onnx", "/a/m.onnx") == ["/m.onnx", "a/m.onnx"]


def test_the_same_path_has_a_number() -> None:
    assert names("/a/m.onnx", "/a/m.onnx", "/b/m.onnx") == ["a/m.onnx", "a/m.onnx (2)", "b/m.onnx"]
    assert names() == []
