"""The widgets of the Queue screen."""
