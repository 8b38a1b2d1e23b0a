"""Memory: what all clients of a broker may hold of it together: requests that arrive or are at work, answers.

Its one rule: each kind has a share of its own, so that clients who never end their requests, or never take
their answers, leave room for the requests of all others. It must not know connections, or how long one may
hold what it has. Tests: tests/runtime/test_memory.py
"""

from __future__ import annotations

# An answer gets at least so much, however little is left: more than most have to say.
_ANSWER_BYTES_MIN = 64 * 1024
# Requests that arrive, or are here and not at work, may hold this part of what all requests may.
_BEGUN_PART = 2
# Requests up to this are begun while those above it, which may take three parts of four, have used theirs up.
_SMALL_REQUEST_BYTES = 64 * 1024
# One answer may take this part of what is left, so that many can be made at once.
_ANSWER_PART = 2


class ClientMemory:
    """Counters of bytes. Requests may hold `bytes_max`, and answers as much again."""

    __slots__ = ("answer_bytes", "begun_bytes", "bytes_max", "has_freed", "request_bytes", "waiting_bytes")

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.request_bytes = 0  # being handled
        self.begun_bytes = 0  # announced by requests whose first bytes are here
        # Whole requests, not at work yet: they hold up what arrives, and not each other, or none could begin.
        self.waiting_bytes = 0
        self.answer_bytes = 0  # promised, or made and not taken yet
        self.has_freed = False  # since the one who waits has last looked

    def has_room_for(self, request_bytes: int) -> bool:
        """Whether a request of so many bytes may be begun. A large one that is at work alone always may."""
        held_bytes = self.request_bytes + self.begun_bytes
        if request_bytes <= _SMALL_REQUEST_BYTES:
            return held_bytes <= self.bytes_max
        return not self.request_bytes or held_bytes + request_bytes <= self.bytes_max // 4 * 3

    @property
    def has_room_for_answers(self) -> bool:
        return self.answer_bytes <= self.bytes_max

    @property
    def answer_room_bytes(self) -> int:
        """What the next answer may hold."""
        return max(_ANSWER_BYTES_MIN, (self.bytes_max - self.answer_bytes) // _ANSWER_PART)

    def begin(self, byte_count: int) -> bool:
        """Count a request that is announced. False: it has to wait. One alone always fits."""
        held_bytes = self.begun_bytes + self.waiting_bytes
        if held_bytes and held_bytes + byte_count > self.bytes_max // _BEGUN_PART:
            return False
        self.begun_bytes += byte_count
        return True

    def end_begun(self, byte_count: int) -> None:
        self.begun_bytes -= byte_count
        self.has_freed = True

    def change_waiting(self, byte_count: int) -> None:
        self.waiting_bytes += byte_count
        if byte_count < 0:
            self.has_freed = True

    def end_request(self, byte_count: int) -> None:
        self.request_bytes -= byte_count
        self.has_freed = True

    def change_answers(self, byte_count: int) -> None:
        """More answers are held, or fewer."""
        self.answer_bytes += byte_count
        if byte_count < 0:
            self.has_freed = True

    def take_freed(self) -> bool:
        has_freed, self.has_freed = self.has_freed, False
        return has_freed
