"""Answers of invoked agents: response form, schemas, and citations to look up.

An answer is untrusted: it is parsed strictly, and its claims about itself are kept next to the results of the engine.
Imported by `attempts.nodes` and `orchestrator.delegation`.
"""
