"""The version, in a file of its own: what imports it imports nothing else."""

__version__ = "0.2.0"
