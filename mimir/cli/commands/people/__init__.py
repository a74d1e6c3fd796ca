"""Commands for questions of agents: the inbox, and the answers.

It promises that an answer is taken once, and that nothing is lost if it is refused. Only the command table imports it.
"""
