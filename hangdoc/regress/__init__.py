"""Hangs as tests: recorded traces against what has to be said of them."""
