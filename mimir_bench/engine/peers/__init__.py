"""Peers of the engine: two bare loops, and an agent of LangGraph's functional API.

None of them is durable. Only `engine.measured_process` starts them.
"""
