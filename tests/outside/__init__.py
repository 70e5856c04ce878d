"""Tasks as a user writes them: one file each, made of `recurra` and `recurra.extend` alone."""
