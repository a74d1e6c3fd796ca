"""Sessions of invocations: limits, queue, agents that spawn agents, metrics.

Promise: each limit is checked in the transaction that creates something. Importers: the orchestrator, `bootstrap` and entry points.
"""
