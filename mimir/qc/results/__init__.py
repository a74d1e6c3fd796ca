"""Results of single tests: their request, their reading within bounds, their comparison.

A known test runner writes its report outside of the workspace, where the engine reads it. `checks` may import these modules.
"""
