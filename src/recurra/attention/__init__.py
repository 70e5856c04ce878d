"""Attention: where to look, as weights that sum to 1."""
