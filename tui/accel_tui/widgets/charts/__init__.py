"""The charts of a screen: how many, where, what keys and the mouse do on them."""
