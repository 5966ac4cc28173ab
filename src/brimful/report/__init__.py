"""Statistics for the terminal: histograms, tables of methods, and pictures of rows before and after packing."""
