"""Sharing models: one file of a run, files from URLs, and the Hugging Face Hub. Torch is not needed for it."""
