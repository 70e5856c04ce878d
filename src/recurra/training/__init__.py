"""Training: the loop, what it keeps, and how it shows itself."""
