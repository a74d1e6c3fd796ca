"""Typed records of stored nodes: frozen values with one table-driven codec. They promise that stored names never change.

`store.operations` returns them; every package above the store may import them. A `Row` never leaves `mimir.store`.
"""
