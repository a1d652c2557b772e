"""The patient: which processes belong to one launch."""
