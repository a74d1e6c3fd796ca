"""Settings of a project and its user: one tree, read from layers.

Promise: with `bootstrap`, this package alone reads the environment. A project's file cannot choose keys, endpoints, the store or the
sandbox. Permitted importers: `bootstrap`, `cli`, `demo`.
"""
