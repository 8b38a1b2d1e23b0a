"""One whole broker without I/O: wires the broker room, the Raft groups and the plans for storage.

Inputs are client requests, peer messages, finished disk work and ticks; outputs are effects (answers,
messages, flushes, jobs for the background threads). It touches no clock, socket, file or thread. Tests:
tests/node.
"""
