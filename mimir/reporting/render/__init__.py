"""Rendering of a summary as markdown, JSON and a Mermaid diagram. Pure.

Untrusted text cannot load, link or format anything in the result. The orchestrator and `reporting.narrative` import it.
"""
