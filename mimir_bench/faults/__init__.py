"""Planted faults: what the engine finds of wrong work when only the models' words are played. The truth is an oracle that it never sees."""
