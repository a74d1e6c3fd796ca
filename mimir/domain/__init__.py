"""Values and rules of the product, without I/O, clock or SDK. Pure.

Every package may import `domain`; `domain` imports only `errors`.
"""
