"""Agents: one conversation each, from the brief to the closing answer.

The loop knows models and tools only by their protocols. Used by attempts, qc, planning and the reporters.
"""
