"""What each engine prints and how its processes are named: tables, no logic."""
