"""One table of keys for each format, and the reader that applies them."""
