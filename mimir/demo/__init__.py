"""A whole run before a person's eyes: offline, without a key, in seconds. The words of the models are a play (`play.yaml`), all else is real.

Promises that nothing is told that the store does not hold, and that it works on a fresh copy of its own project (`project/`, data).
Entered by the command line.
"""
