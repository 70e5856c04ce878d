"""Terms: what is added to the scores of an attention because of where it has looked before."""
