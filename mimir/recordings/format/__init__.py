"""Format of recordings: the file, its lines as values, and the comparison of requests.

The lines of version 1 never change. The other packages of `recordings` import it.
"""
