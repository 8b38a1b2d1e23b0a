"""Broker: what requests mean. Pure: the clock, randomness, logs and other brokers come in through ports.py.

The one rule: a request comes in as a decoded message with the time, and leaves as an answer or as a parked
waiter that answers later; nothing here waits, and nothing here knows sockets, files, threads or Raft.
Tests: tests/broker/
"""
