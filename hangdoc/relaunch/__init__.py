"""Start a launch again: its command as it was, what its GPUs need in addition, and a watch until it is ready."""
