"""Operations on runs, tasks and evidence: written once, above the protocol of every store.

Each promises that a change and its event are one transaction. Every package above the store may import them.
"""
