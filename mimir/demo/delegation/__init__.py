"""The demo of delegation: a scripted agent calls the real server by its protocol.

It promises that no setting and no model of the user takes part. Only `demo.entry` may import it.
"""
