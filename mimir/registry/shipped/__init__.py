"""Agent definitions that are shipped with mimir, one folder each."""
