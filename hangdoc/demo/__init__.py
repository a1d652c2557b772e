"""A small sick launch that hangdoc starts, diagnoses and ends, to show what it does."""
