"""Kafka's messages, one module per API: request and response, declared once for all versions that are served.

The one rule: names and order are Kafka's own (in snake case), since the order is the wire. A field that only
versions below the served ones know is left out, and `since` is left out where all served versions have the
field. Nothing here knows how bytes are read or written. Tests: tests/protocol/test_declarations.py,
test_oracles.py
"""
