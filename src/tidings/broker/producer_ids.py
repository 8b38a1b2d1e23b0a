"""Producer ids: numbers that no producer of this cluster ever had, drawn from blocks of the metadata.

The one rule: an id is handed out once. A block belongs to the broker that asked for it; what is left of it
when the broker stops is lost, which 2^63 ids can bear.
It must not know who wants an id. Tests: tests/broker/test_producer_ids.py
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tidings.broker.commands import AllotProducerIds, encode_command
from tidings.broker.outcome import Outcome
from tidings.broker.ports import Controller
from tidings.protocol.errors import ErrorCode

BLOCK_ID_COUNT = 1_000  # Kafka's: one change of the metadata per thousand producers

Then = Callable[[int | None], None]


class ProducerIds:
    """This broker's block, and who waits for the next one."""

    def __init__(self, *, broker_id: int, controller: Controller) -> None:
        self._broker_id = broker_id
        self._controller = controller
        self._next_id = 0
        self._end_id = 0
        self._waiting: deque[Then] = deque()

    def take(self) -> int | None:
        """An id out of the block at hand; None: there is none left, use take_later."""
        if self._next_id == self._end_id:
            return None
        self._next_id += 1
        return self._next_id - 1

    def take_later(self, then: Then, now_ms: int) -> None:
        """An id out of the next block; None: no block could be had."""
        self._waiting.append(then)
        if len(self._waiting) == 1:
            command = AllotProducerIds(broker_id=self._broker_id, id_count=BLOCK_ID_COUNT)
            self._controller.propose(encode_command(command), self._allotted, now_ms)

    def _allotted(self, outcome: Outcome | None) -> None:
        waiting, self._waiting = self._waiting, deque()
        if outcome is not None and outcome.code is ErrorCode.NONE:
            self._next_id = outcome.value
            self._end_id = outcome.value + BLOCK_ID_COUNT
        for then in waiting:
            then(self.take())
