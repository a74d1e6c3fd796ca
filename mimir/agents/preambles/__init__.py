"""Preambles: templates, generated files, and the fixed rules of each system message.

A run never stops because a preamble could not be generated. Used by bootstrap, orchestrator and reporting.
"""
