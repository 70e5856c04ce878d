"""Wrappers change a cell without subclassing it. The file name is the config name."""
