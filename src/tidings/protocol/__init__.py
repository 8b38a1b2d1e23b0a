"""Kafka's wire protocol: bytes to values and back. Messages, record batches, and the framing of connections.

The room imports nothing of Tidings and touches nothing: no clock, no socket, no file. Bytes come from
strangers; what cannot be read ends in ProtocolError and in nothing else. Tests: tests/protocol.
"""
