"""Arithmetic and graphs over a trace; pure."""
