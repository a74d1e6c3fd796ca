"""Programs as workers: presets, readers of output, the call in the transcript.

A program is one effectful call; checks, QC and retry follow as for any worker. `bootstrap` starts the process.
"""
