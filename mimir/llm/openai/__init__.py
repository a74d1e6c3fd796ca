"""HTTP client of the OpenAI chat protocol: payload, stream, errors, connections.

It sends each request once and classifies every failure. Only `mimir.llm` and `bootstrap` import it.
"""
