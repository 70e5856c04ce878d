"""Looks: how scores become weights, other than by a softmax over all places."""
