"""The tools of an agent, and the gateway that every call passes.

A call is permitted, checked, recorded, executed and cleared of secrets, in this order. A mistake of the model becomes a text that it can
act on, never an exception. Nothing outside the workspace is read or written. `bootstrap` builds gateways; agents use
`protocol.Toolset` and `batch.run_batch` only.
"""
