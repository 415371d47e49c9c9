"""Lets runs wait until the devices that they ask for are free, and starts them, without a daemon."""
