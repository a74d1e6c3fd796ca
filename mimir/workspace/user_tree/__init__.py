"""The person's own directory and branch: what `workspace.apply` does there; entered through it and `workspace.git`."""
