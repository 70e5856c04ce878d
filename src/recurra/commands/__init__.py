"""One function for each command: a few lines that call the library; none imports torch until it is needed."""
