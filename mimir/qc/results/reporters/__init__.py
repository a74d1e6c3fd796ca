"""Reporters that run inside of test runners; the engine imports `programs.NO_TEST_RUN`.

They run in any Python from 3.6 on, or in node. No other module imports them.
"""
