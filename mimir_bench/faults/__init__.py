"""Benchmark of planted faults: wrong work that the engine detects.

Only the models are scripted. Hidden tests that the engine never sees decide which work is wrong. Entry:
`faults.benchmark`.
"""
