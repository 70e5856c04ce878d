"""Tests of how two texts are read together."""
