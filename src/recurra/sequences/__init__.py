"""What tasks that write sequences share: both sides as texts, what was written, what is said of it."""
