"""From counts per example to scores."""
