"""Planning: turn a request into a checked plan, and a plan's text into tasks.

A plan is read completely, or each fault is a finding with its position; missing values are never
invented. The orchestrator, the recorder and `mimir check` enter here.
"""
