"""Reporters that run inside of test runners; the engine imports none of them.

They run in any Python from 3.6 on, or in node. Nothing may import them.
"""
