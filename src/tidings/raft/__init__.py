"""One consensus group: a message, a tick or a finished write in, new state and work out.

The room imports nothing of Tidings and touches nothing: no clock, no socket, no file, no random number that
was not passed in. Tests: tests/raft.
"""
