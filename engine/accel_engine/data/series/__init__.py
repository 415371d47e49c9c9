"""Time series: windows over the rows of a table or an array, and the values that follow each."""
