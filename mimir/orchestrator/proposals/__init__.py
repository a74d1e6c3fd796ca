"""Memories that agents propose: the checks of the engine, and decisions about them."""
