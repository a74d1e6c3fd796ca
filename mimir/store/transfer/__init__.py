"""A store taken out whole, and put into another one: one view into a file, bounded batches out of it. Above the primitives; any store to any store."""
