"""Families of cases: small projects with right work, wrong work and hidden tests.

Data comes from a seed. Only the benchmark of planted faults uses them.
"""
