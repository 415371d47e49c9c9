import pytest

from accel_tui.formatting import names


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("/a/long/way/net.py:build", "net.py:build"),
        ("/data/flowers/", "flowers"),
        ("mine.npz", "mine.npz"),
        ("package.module:build", "package.module:build"),
        ("synthetic:8x8x1:10", "synthetic:8x8x1:10"),
        ("", ""),
        ("/", "/"),
    ],
)
def test_a_name_is_told_without_its_folder(spec: str, told: str) -> None:
    assert names.base_name(spec) == told
