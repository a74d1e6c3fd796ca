"""Write scope of an attempt, and owners of test files. Pure.

Each rule is a pure function of plan, base tree and path. Attempts, bootstrap, scheduling and planning import these modules.
"""
