"""Wrappers around a toolset: quota, lazy workspace.

Imported by the gateway and by `bootstrap`.
"""
