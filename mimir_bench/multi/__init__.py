"""Benchmark of context: one agent against PM, workers and QC.

Project, tools and answers are equal; the same store counts. Entry: `multi.benchmark`.
"""
