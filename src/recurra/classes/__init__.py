"""What classification learns from data, and how it answers."""
