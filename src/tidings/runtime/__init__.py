"""The only server room that touches the world: loop, sockets, clocks, threads and processes drive a `node`.

Tests: tests/runtime.
"""
