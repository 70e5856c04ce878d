"""Trained models at work: a page in the browser and a JSON API, on this machine."""
