"""What CPython keeps in memory about threads, frames and locks."""
