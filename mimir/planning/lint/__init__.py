"""Rules for a plan that was read: tasks, graph, paths and commands that cannot fail. Pure.

Every violation is a finding with a stable code; nothing is executed. Entry: `plan_check.check`.
"""
