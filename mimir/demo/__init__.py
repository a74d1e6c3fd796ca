"""Demo: a whole run on a small project, offline and narrated, with scripted models.

Every narrated line comes from the store, and each demo works on a fresh copy of `project/` (data). The command line imports it.
"""
