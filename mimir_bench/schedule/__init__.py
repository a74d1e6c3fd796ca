"""Benchmark of scheduling: duration of runs over their lower bound.

Task graphs have known shapes and durations from printed seeds; the engine is the real one. Entry:
`schedule.benchmark`.
"""
