"""Model access: one protocol, its adapters, and the wrappers that guard every call.

A model answers through `ChatModel` only. Every layer above may use the protocol; only `bootstrap` names an adapter.
"""
