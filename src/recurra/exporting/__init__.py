"""Exporting: a trained model recorded as a program (recurra.programs), and the folder that holds it."""
