"""Numbers about models and machines: the catalogue of cells, their speed, and problems that test their memory."""
