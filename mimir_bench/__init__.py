"""Benchmarks: what the engine finds and what it costs, measured over `app` with real runs. One module or folder a benchmark; doors enter by `door`."""
