"""Matrix products that torch does not offer: packed for few rows, differentiated once for many steps, or in pieces."""
