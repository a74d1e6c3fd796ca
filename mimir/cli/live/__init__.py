"""The view of a running run: its events as a board, as lines or as JSON.

The same events give the same view. Imported by the commands and by the demo.
"""
