"""Answers of invoked agents: response form, schemas, and citations to look up.

An answer is untrusted: it is parsed strictly, and what it claims about itself is kept beside what the engine computes.
Imported by `attempts.nodes` and `orchestrator.delegation`.
"""
