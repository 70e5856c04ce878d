"""Tasks: everything between a file on disk and a number on the screen. The file name is the config name."""
