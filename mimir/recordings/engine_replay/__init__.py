"""Engine replay: the engine decides a recorded run again and executes nothing.

Each difference is reported with its place. `bootstrap` imports `replay_runner`.
"""
