"""A stand-in with the process layout of the real package; starts what a plan says and then waits."""
