"""Words: terminal, JSON document."""
