"""Matrix products that torch does not offer: packed for few rows, and gradients computed once for many steps."""
