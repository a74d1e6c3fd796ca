"""What `verify` recomputes: chains of records, what rows claim beside them, the objects that they name.

Everything found is a line that begins with the id of the record, or of the node, that it is about. Nothing here changes anything.
"""
