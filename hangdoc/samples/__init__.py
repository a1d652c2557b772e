"""The outside of the capture: what a launch needs for it, whether that works, and what a directory of samples holds."""
