"""Benchmarks: detection and cost of the engine, measured by real runs.

One module or folder is one benchmark; all of them start at `entry`. They use the engine through
`mimir.bootstrap`. The product never imports this package; `mimir bench` starts it by name.
"""
