"""Sweeps: many runs of one task, whose settings are drawn from a space that is searched."""
