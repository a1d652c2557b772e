"""The clock: rounds, deadlines, and a budget for each probe."""
