"""The door to models and its wrappers. Adapters are named by app alone."""
