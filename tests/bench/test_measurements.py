"""The laboratory stops every cluster it handed out, whatever happened with it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.measurements import Laboratory
from bench.processes import StartError
from bench.tidings_cluster import Tidings


class Deeds(Tidings):
    """A system that notes what is done to it and starts nothing; a start can be made to fail."""

    def __init__(self, deeds: list[str], *, environment: Mapping[str, str], fails: bool = False) -> None:
        super().__init__(environment=environment)
        self._deeds = deeds
        self._fails = fails

    def prepare(self) -> None:
        self._deeds.append("prepare")

    def start(self) -> None:
        if self._fails:
            raise StartError("no")
        self._deeds.append("start")

    def stop(self) -> None:
        self._deeds.append("stop")


def test_a_fresh_cluster_is_stopped_after_its_measurement_failed() -> None:
    deeds: list[str] = []
    laboratory = Laboratory(lambda environment: Deeds(deeds, environment=environment), warm_up_s=0.0)

    with pytest.raises(RuntimeError), laboratory.fresh():
        raise RuntimeError("the measurement broke")

    assert deeds == ["prepare", "start", "stop"]


def test_a_cluster_that_could_not_start_is_stopped_all_the_same() -> None:
    deeds: list[str] = []
    laboratory = Laboratory(
        lambda environment: Deeds(deeds, environment=environment, fails=True), warm_up_s=0.0
    )

    with pytest.raises(StartError), laboratory.fresh():
        pass
    with pytest.raises(StartError):
        laboratory.shared()
    laboratory.close()

    assert deeds == ["prepare", "stop", "prepare", "stop"]


def test_a_fresh_cluster_gets_the_environment_that_was_asked_for(tmp_path: Path) -> None:
    seen: list[Mapping[str, str]] = []

    def make(environment: Mapping[str, str]) -> Deeds:
        seen.append(environment)
        return Deeds([], environment=environment)

    with Laboratory(make, warm_up_s=0.0).fresh({"LD_PRELOAD": "slow.so"}):
        pass

    assert seen == [{"LD_PRELOAD": "slow.so"}]
