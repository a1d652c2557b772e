"""Log bytes in, events out."""
