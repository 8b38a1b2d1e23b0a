"""Virtual time: order, and clocks that are wrong."""

from tidings.sim.clock import MS, Agenda, DriftingClock


def test_events_happen_by_time_and_at_one_time_in_the_order_of_planning() -> None:
    agenda = Agenda()
    happened: list[object] = []
    agenda.after(20, happened.append, "late")
    agenda.after(10, happened.append, "first")
    agenda.after(10, happened.append, "second")

    agenda.run_until(30)

    assert happened == ["first", "second", "late"]
    assert agenda.now_us == 30


def test_what_is_planned_for_later_waits_for_the_next_run() -> None:
    agenda = Agenda()
    happened: list[object] = []
    agenda.after(20, happened.append, "late")

    agenda.run_until(19)
    before = list(happened)
    agenda.run_until(20)

    assert before == []
    assert happened == ["late"]


def test_an_event_may_plan_another_one_for_the_same_moment() -> None:
    agenda = Agenda()
    happened: list[object] = []
    agenda.after(5, lambda _: agenda.after(0, happened.append, "planned at 5"))

    agenda.run_until(5)

    assert happened == ["planned at 5"]


def test_a_clock_drifts_and_jumps_ahead_but_never_goes_back() -> None:
    agenda = Agenda()
    clock = DriftingClock(agenda, start_ms=100, rate_permille=950)

    agenda.run_until(1_000 * MS)
    drifted_ms = clock.now_ms
    clock.jump(500)

    assert drifted_ms == 100 + 950
    assert clock.now_ms == 100 + 950 + 500
