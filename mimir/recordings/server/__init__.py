"""Server of a recording: recorded answers over HTTP for programs in other languages.

It listens on the loopback interface only. `cli` imports it for `mimir serve-recording`.
"""
