"""The probes: one public module is one probe."""
