"""Handlers: one module per API: `handle(site, request, now_ms) -> Message | None`, None: answered later.

Rule: a handler turns one request into one answer and keeps nothing; what outlives it hangs at the Site or is
parked on a Partition. Tests: tests/broker/handlers/
"""
