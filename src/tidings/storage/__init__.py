"""The storage room: everything that is a file. A shared write-ahead log, the groups' segments and
checkpoints, recovery.

The one rule: synchronous code over the seam files.py; who calls it from which thread is said at each class.
It must not know what a payload means, what a leader is, or what time it is.
"""
