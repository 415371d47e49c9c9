"""The runs of this machine: creates, lists, finds and removes them."""
