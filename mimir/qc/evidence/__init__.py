"""Evidence: sealed payloads of an attempt, and the hash chains that bind them. Pure.

The modules are pure. Attempts, scheduling and reporting import them.
"""
