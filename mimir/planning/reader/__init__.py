"""Text to tasks: lines, blocks, labels, values. Strict about meaning, generous about form; never raises on any text.

Entered by `planning.chain` (to read) and `planning.render` (to ask whether a value would be read back as it is).
"""
