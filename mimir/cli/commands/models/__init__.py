"""Commands about models: first settings, and prices.

Only the command line imports them.
"""
