"""What there is to see, as values, and how each kind of value is drawn."""
