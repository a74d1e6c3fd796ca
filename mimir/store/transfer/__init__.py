"""Transfer of stored runs: into a file, another store, or a recording.

The orchestrator and recordings import it. It promises that a copy equals its source.
"""
