"""Search with untrusted patterns, bounded in time and memory. For the file tools."""
