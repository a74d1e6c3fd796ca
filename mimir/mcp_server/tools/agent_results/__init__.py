"""Tools on results of agents: validation of a response, instructions of the project.

Only the tool sets import them.
"""
