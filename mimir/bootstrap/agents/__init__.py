"""Agents of the user and the project: definition files with their trust, and programs.

Permitted importers: `bootstrap`, `cli`.
"""
