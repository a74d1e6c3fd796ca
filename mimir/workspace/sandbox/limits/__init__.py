"""Limits that the kernel sets on commands; only `mimir.workspace.sandbox` imports them."""
