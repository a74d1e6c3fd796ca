"""Typed records of stored nodes: frozen values; their stored names never change.

`store.operations` returns them; every package above the store may import them. A `Row` never leaves `mimir.store`.
"""
