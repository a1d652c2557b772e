"""The end of a launch: who belongs to it, how it is ended, and the proof that nothing of it is left."""
