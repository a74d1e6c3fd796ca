"""Commands for people in the loop: the inbox, answers, and the ledger.

It promises that an answer is taken once, and that nothing is lost if it is refused. Only the command table imports it.
"""
