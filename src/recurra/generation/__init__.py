"""Writing freely: a language model goes on from a prompt, vector to sequence draws what may be said of one."""
