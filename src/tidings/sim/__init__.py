"""Whole clusters on a virtual clock, network and disk, all drawn from one seed: what is simulated is what
runs.

One seed, one run: the heap of events and the random source are the only origins of order and chance, so a
failing seed is replayed by one command (`tidings sim raft --seed N --trace`). The room touches nothing
outside. Tests: tests/sim.
"""
