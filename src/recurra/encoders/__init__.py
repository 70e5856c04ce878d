"""What turns elements of a sequence into vectors."""
