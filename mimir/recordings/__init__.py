"""Recordings of runs: writing, replay, replayed models, and a recorded endpoint.

A replay executes nothing and names the first difference. Only `bootstrap` and `cli` import it.
"""
