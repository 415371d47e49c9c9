"""Themes, colours and glyphs, and their fallbacks on limited terminals."""
