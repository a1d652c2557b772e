"""What glibc keeps in memory about threads and locks."""
