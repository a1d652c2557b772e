"""The trace: the seam between the machine and the reasoning."""
