"""The list, the filter and the comparison of runs, without widgets."""
