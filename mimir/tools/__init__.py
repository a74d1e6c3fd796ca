"""The hands of an agent: the tools, and the one gateway through which every call goes.

Promises: a call is checked, allowed, journaled, run and stripped of secrets in this order; what the model did wrong comes back as
text that it can act on, never as an exception; nothing outside the workspace is read or written. `app` builds gateways; agents
enter through `protocol.Toolset` and `batch.run_batch` only.
"""
