"""Changes valid contents: bytes are overwritten, taken out, put in, and the rest is cut off."""

from hypothesis import strategies as st

EDITS = 4
"""Maximum number of changes."""

_REPLACEMENTS = st.binary(max_size=8) | st.sampled_from(
    [b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"9" * 30, b"[" * 500, b'"', b"\n", b"{", b"\x80", b"\xef\xbb\xbf"]
)


@st.composite
def edited(draw: st.DrawFn, content: str | bytes) -> bytes:
    """A content with some changes."""
    data = bytearray(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    for _ in range(draw(st.integers(0, EDITS))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 8))] = draw(_REPLACEMENTS)
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)
