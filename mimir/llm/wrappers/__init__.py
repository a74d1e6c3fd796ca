"""Wrappers of `ChatModel`: journal, retry, rate limit, redaction.

Each wrapper adds one guarantee and knows no other. `llm.endpoints` and the callers of a transcript stack them.
"""
