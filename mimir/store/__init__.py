"""Where everything is kept: one protocol, verbs above it, adapters below. Adapters are named by app alone."""
