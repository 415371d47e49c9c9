from accel_tui.cli.durations import ago, duration
from accel_tui.cli.table import shortened, table


def test_columns_are_as_wide_as_their_text_and_the_last_one_wraps():
    text = table(("A", "LONG TITLE", "C"), [("one", "x", "words that go on for a while"), ("2", "", "")], width=30)
    assert text.splitlines() == [
        "A    LONG TITLE  C",
        "one  x           words that go",
        "                 on for a",
        "                 while",
        "2",
    ]


def test_a_narrow_terminal_gets_longer_lines_rather_than_a_column_of_letters():
    assert table(("A", "B"), [("x" * 20, "some words")], width=10).splitlines()[1] == "x" * 20 + "  some words"


def test_shortened():
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdef", 4) == "abc\u2026"


def test_durations():
    assert [duration(seconds) for seconds in (0, 4.25, 59.97, 185, 7384.6)] == [
        "0.0 s",
        "4.2 s",
        "1:00",
        "3:05",
        "2:03:05",
    ]
    assert [ago(seconds) for seconds in (3, 120, 7200, 86400 * 3)] == ["just now", "2 min ago", "2 h ago", "3 d ago"]
