"""Errors: what can come of talking to a cluster, for callers that should not import the client to catch it.

Rule: three kinds, split by what to do about them: look for the cluster, start its brokers, or ask for
something else. Must not know: the client's error codes. Tests: tests/kafka/test_connection.py
"""


class Unreachable(Exception):
    """No broker answers at the given addresses. `hint`: where it may be instead."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.hint = hint


class NoMajority(Exception):
    """Brokers answer, but so few that the cluster can do nothing."""


class Refused(Exception):
    """The cluster refused what was asked, or could not do it. `name` is the error's name in Kafka."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.name = name
