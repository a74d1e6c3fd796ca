"""Models of a process: their endpoints, keys and prices, and the settings that name them.

Permitted importers: `bootstrap`, `cli`.
"""
