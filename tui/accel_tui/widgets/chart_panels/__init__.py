"""The charts of a screen: layout, keys, mouse."""
