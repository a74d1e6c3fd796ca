"""One module for each command family: arguments, API call, output.

Imported by `cli.main`.
"""
