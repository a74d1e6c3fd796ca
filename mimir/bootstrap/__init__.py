"""Composition of a process: settings become stores, tools, models and services.

Only this package names concrete adapters. The entry points `cli`, `demo` and `mimir_bench` import it.
"""
