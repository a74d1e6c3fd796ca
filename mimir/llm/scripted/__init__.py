"""Scripted models: answers from a model script in YAML, without network or key.

The same script gives the same answers. Opened by `llm.endpoints`; tests serve scripts over HTTP.
"""
