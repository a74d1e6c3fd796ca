"""Benchmark of check runs for each accepted attempt, with and without controls.

Entry: `checks.benchmark`.
"""
