"""Where everything is kept: one protocol, verbs above it, adapters below.

Promises that what was committed survives a kill at any point, that every change of state stands with its event in one transaction,
and that a write with an old fence is refused. Entered by the rooms above the boundaries; adapters are named by `app` alone.
"""
