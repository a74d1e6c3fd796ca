"""Text to tasks: lines, blocks, labels and values. Pure.

The reader is strict about meaning, generous about form, and never raises on any text. Only
`planning` enters: the parser reads, and the renderer asks whether a value is read back unchanged.
"""
