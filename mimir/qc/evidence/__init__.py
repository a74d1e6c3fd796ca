"""Evidence: sealed payloads of deliverables, check runs and verdicts, and the hash chains that bind them.

The modules are pure. Attempts, scheduling and reporting import them.
"""
