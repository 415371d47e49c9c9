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


def test_of_what_is_too_long_the_end_is_told() -> None:
    assert names.shorten_start("my_networks.py:build", 14) == "…rks.py:build"[:1] + "tworks.py:build"[-13:]
    assert len(names.shorten_start("my_networks.py:build", 14)) == 14
    assert names.shorten_start("net.py:build", 12) == "net.py:build"
