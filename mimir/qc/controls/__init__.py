"""Negative controls: a passed check runs again with changed expectations, and must fail.

Pure modules choose the texts and decide; `control_runner` runs the variants. Checks, attempts and recordings import these modules.
"""
