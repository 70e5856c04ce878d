"""Search: from a step that gives the log-probabilities of the next token to whole sequences. It knows no models."""
