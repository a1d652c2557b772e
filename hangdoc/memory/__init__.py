"""Reading the memory of a process from outside: never writing, never stopping it."""
