"""Bytes of /proc in, records out; opens nothing."""
