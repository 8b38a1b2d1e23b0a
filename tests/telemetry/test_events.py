"""The event log writes one line per event, bounded in length and number."""

import io
import json

from tidings.config.options import Config
from tidings.telemetry.events import FIELD_CHARACTERS_MAX, EventLog, Level, Limiter, open_log


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 1_763_541_000.25

    def __call__(self) -> float:
        return self.now_s


class ClosedPipe(io.StringIO):
    """A stream that nobody reads any more."""

    def write(self, text: str, /) -> int:
        raise BrokenPipeError


class Terminal(io.StringIO):
    """A stream that a person watches."""

    def isatty(self) -> bool:
        return True


def log_to(
    stream: io.StringIO, *, is_json: bool = True, level: Level = Level.INFO, clock: Clock | None = None
) -> EventLog:
    return EventLog(
        stream=stream, is_json=is_json, level=level, events_per_second_max=3, clock_s=clock or Clock()
    )


def events(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_line_of_json() -> None:
    stream = io.StringIO()

    log_to(stream).event("leader_elected", topic="news", epoch=3)

    assert events(stream) == [
        {
            "time": "2025-11-19T08:30:00.250Z",
            "level": "info",
            "event": "leader_elected",
            "topic": "news",
            "epoch": 3,
        }
    ]


def test_an_event_for_people_is_one_line_of_text() -> None:
    stream = io.StringIO()

    log_to(stream, is_json=False).warning("disk_full", folder="/srv/a b", free_bytes=0)

    assert stream.getvalue() == '08:30:00.250 warning disk_full folder="/srv/a b" free_bytes=0\n'


def test_what_is_bound_stands_in_every_event() -> None:
    stream = io.StringIO()
    log = log_to(stream).bind(broker=2)

    log.event("started")
    log.bind(group=7).event("voted", broker=3)

    first, second = events(stream)
    assert first["broker"] == 2
    assert (second["broker"], second["group"]) == (3, 7)


def test_events_below_the_level_are_not_written() -> None:
    stream = io.StringIO()
    log = log_to(stream, level=Level.WARNING)

    log.event("started")
    log.error("failed")

    assert [each["event"] for each in events(stream)] == ["failed"]


def test_too_many_of_one_name_are_counted_and_not_written() -> None:
    stream, clock = io.StringIO(), Clock()
    log = log_to(stream, clock=clock)

    for _ in range(10):
        log.event("request_malformed")
    log.event("started")
    clock.now_s += 1
    log.event("request_malformed")

    written = events(stream)
    assert [each["event"] for each in written] == 3 * ["request_malformed"] + ["started", "request_malformed"]
    assert written[-1]["suppressed"] == 7


def test_bound_logs_share_one_limit() -> None:
    stream = io.StringIO()
    log = log_to(stream)

    for client in range(5):
        log.bind(client=client).event("connection_refused")

    assert len(events(stream)) == 3


def test_a_value_cannot_break_the_line_or_the_disk() -> None:
    stream = io.StringIO()

    log_to(stream).event(
        "topic_refused", name="a\nb\x1b[2J" + "x" * 10_000, bytes=b"\xff", many=["y" * 10_000]
    )

    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()
    [event] = events(stream)
    assert len(str(event["name"])) == FIELD_CHARACTERS_MAX + 1
    assert event["bytes"] == "b'\\xff'"
    assert len(stream.getvalue()) < 4 * FIELD_CHARACTERS_MAX


def test_text_quotes_what_is_not_plain() -> None:
    stream = io.StringIO()

    log_to(stream, is_json=False).event("seen", plain="a-1:2", empty="", line="a\nb", none=None)

    assert stream.getvalue().endswith('seen plain=a-1:2 empty="" line="a\\nb" none=null\n')


def test_a_reader_that_is_gone_stops_nothing() -> None:
    log_to(ClosedPipe()).event("started")


def test_auto_is_text_on_a_terminal_and_json_elsewhere() -> None:
    terminal, pipe = Terminal(), io.StringIO()

    for stream in (terminal, pipe):
        open_log(Config(), stream).bind(broker=1).event("started")

    assert "info    started broker=1" in terminal.getvalue()
    assert events(pipe)[0]["broker"] == 1


def test_the_limiter_forgets_with_the_second() -> None:
    limiter = Limiter(1)

    admitted = [limiter.admit("a", now_s) for now_s in (5.0, 5.9, 6.0, 5.0)]

    assert admitted == [True, False, True, True]
