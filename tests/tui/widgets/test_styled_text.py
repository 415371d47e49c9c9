import pytest

from accel_tui.widgets.styled_text import plain_spans, wrapped_spans


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 10, [""]),
        ("one two three", 8, ["one two ", "three"]),
        ("one two", 7, ["one two"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("日本語 語", 6, ["日本語 ", "語"]),  # wide characters
    ],
)
def test_words_stay_whole_if_they_fit(text: str, width: int, lines: list[str]) -> None:
    assert [plain_spans(line) for line in wrapped_spans([(text, "")], width)] == lines


def test_spans_stay_whole_and_keep_their_styles() -> None:
    found = list(wrapped_spans([("ab ", "a"), ("cd ", "b"), ("ef ", "c")], 6, at_words=False))
    assert found == [[("ab ", "a"), ("cd ", "b")], [("ef ", "c")]]
