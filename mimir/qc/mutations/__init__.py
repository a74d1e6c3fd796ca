"""Mutations: texts of tests, scripts and programs that fail, by language. Pure.

Each module changes expectations, first statements or ends of one kind of text. `controls` imports these modules.
"""
