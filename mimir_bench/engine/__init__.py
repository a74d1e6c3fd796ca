"""Benchmark of cost: CPU time, bytes, memory and waiting of the engine.

Bare loops and a peer do the same work in the same run. Entry: `engine.benchmark`.
"""
