"""Attacks on checks by each known cause, and honest work of the same shape.

Small projects in Python, JavaScript, Go, make and shell. The benchmark of planted faults and the tests of trust use them.
"""
