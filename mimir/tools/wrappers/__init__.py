"""Wrappers around a toolset: transcript, quota, lazy workspace.

Imported by the gateway and by `bootstrap`.
"""
