"""Attach to a running LLM-server launch and say whether it is busy-waiting, blocked or slow, and who has to move."""

__version__ = "0.1.0"
