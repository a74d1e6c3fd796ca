"""One attempt at one task: its state machine, its nodes and its workspace.

An attempt never sees the store: it writes through its journal, and a resumed attempt continues in the phase where it stopped.
`mimir.scheduling` runs attempts; the layers above read `results` and `services`.
"""
