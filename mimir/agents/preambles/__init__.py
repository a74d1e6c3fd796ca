"""Preambles: templates, generated files and the fixed rules that close each system message.

A run never stops because a preamble could not be generated. Used by bootstrap, orchestrator and reporting.
"""
