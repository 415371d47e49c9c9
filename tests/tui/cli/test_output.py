from accel_tui.cli.output import table


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
