"""Replayed models: recorded answers in the recorded order, real work.

A request that is not recorded pauses the run. `bootstrap` imports it.
"""
