"""What tasks read from files and questions: rows to examples, and which column is what."""
