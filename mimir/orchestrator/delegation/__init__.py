"""Invocation of an agent definition: a run with one task, and its response."""
