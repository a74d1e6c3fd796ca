"""Benchmark of claims: ten workers on a hundred tasks, in one and in several processes.

It runs on each available store. Entry: `scale.benchmark`.
"""
