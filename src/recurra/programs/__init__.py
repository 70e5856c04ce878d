"""Programs: what a predictor computes, as data. NumPy interprets them, C is printed from them; torch is not needed."""
