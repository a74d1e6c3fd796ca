"""Product verbs: request, plan, run, result and report of one project.

One module a verb; `api.Mimir` is their common entry point. Bootstrap, recordings and the entry points above them import this package.
"""
