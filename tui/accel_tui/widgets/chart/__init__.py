"""Charts of per-step curves: a pure core of NumPy arrays, and the widget that shows them."""
