"""Decoders: a target, one token after the other, given a source."""
