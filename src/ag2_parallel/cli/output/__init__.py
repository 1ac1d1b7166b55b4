"""Results as files and on standard output, written while tasks finish."""
