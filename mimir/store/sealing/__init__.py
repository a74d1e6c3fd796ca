"""Record of a run: facts, digests of nodes, and the comparison with both.

The caller passes the function that seals a body: evidence chains belong to `qc`. scheduling, orchestrator and reporting import this package.
"""
