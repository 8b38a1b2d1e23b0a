"""Compatibility: runs the stock clients' tests and writes docs/compatibility.md from what passed.

Rule: a client can do what a test has just shown, and nothing else. A test says what it shows by the marker
`shows`; the page says only what every test with that marker has passed.
Must not know: how a client is used; what stands in code is compatibility_facts.py's.
Tests: tests/house/test_compatibility.py
"""

import json
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import apache_kafka
from tools import compatibility_facts as facts

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "compatibility.md"
TESTS = "tests/clients"
PACKAGES = ROOT / TESTS / "javascript" / "package.json"
# The columns, in the order in which they stand.
CLIENTS = ("Java", "confluent-kafka", "aiokafka", "kafka-python", "kcat", "KafkaJS")
BROKER = "librdkafka and raw requests"
# What a feature's name begins with, in the order in which the rows stand.
GROUPS = ("produce", "message", "compression", "consume", "admin", "refused at once", "tool")
ROW_SEPARATOR = ": "

# Each text begins and ends with a line's end, so that empty lines part it from the tables around it.
HEAD = """\
# What Kafka clients can do with Tidings

Written by `make compatibility` from tests that have just passed and from the tables in the code. A change by
hand is lost with the next run.

## Stock clients

As they are, told nothing but addresses and what a row names. An empty field: the client has no such thing,
or nobody has looked.
"""
KEYS = """
## Where a key goes

The same key must go to the same partition whoever writes it. Clients differ unless they are told:
"""
LEFT_OUT = """
## What is left out, and how it is refused

- Consumer groups: `FindCoordinator` answers GROUP_AUTHORIZATION_FAILED and says that partitions can be
  assigned with explicit offsets. librdkafka looks for a coordinator even then, because it wants a `group.id`:
  a reader by assignment is told of this error once, and reads on if its program does.
- Transactions: `FindCoordinator`, `InitProducerId` with a transactional id and transactional batches are
  answered TRANSACTIONAL_ID_AUTHORIZATION_FAILED. Idempotent producers need none of it.
- All others are not advertised, so that no client asks. The connection of one that does is closed, with an
  event.
"""
SETTINGS = """
## Settings of a topic

Names and defaults are Kafka's. A name that is not here is refused, and so is a value that nobody would act
on.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the tests of a run have shown: per client the features, and whether all their tests passed."""

    passed_by_feature: Mapping[tuple[str, str], bool]

    def says(self, client: str, feature: str) -> str:
        passed = self.passed_by_feature.get((client, feature))
        return {None: "", True: "yes", False: "**no**"}[passed]

    def features(self, *clients: str) -> list[str]:
        """The features that these clients were asked about, in the order of their groups."""
        found = {feature for client, feature in self.passed_by_feature if client in clients}
        return sorted(found, key=_place)

    def failures(self) -> list[str]:
        failed = (place for place, passed in self.passed_by_feature.items() if not passed)
        return [ROW_SEPARATOR.join(place) for place in sorted(failed)]


def main(arguments: Sequence[str]) -> int:
    """`python -m tools.compatibility` writes the page; fails, naming them, if features did not pass."""
    if arguments:
        print("usage: python -m tools.compatibility", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        run_tests(report)
        shown = read_report(report.read_text(encoding="utf-8"))
    if not shown.passed_by_feature:
        print("no test has shown anything: is the cluster able to start?", file=sys.stderr)
        return 1
    PAGE.write_text(page(shown), encoding="utf-8")
    failures = shown.failures()
    for failure in failures:
        print(f"did not pass: {failure}", file=sys.stderr)
    return 1 if failures else 0


def run_tests(report: Path) -> None:
    """All tests that show something, those marked long too. Their verdicts are in the report."""
    options = ["-m", "shows", "-n", "2", "--quiet", f"--junitxml={report}"]
    # Somebody else's cluster would say what that can do.
    environment = {name: value for name, value in os.environ.items() if name != "TIDINGS_TEST_KAFKA"}
    subprocess.run([sys.executable, "-m", "pytest", TESTS, *options], cwd=ROOT, env=environment, check=False)


def read_report(xml: str) -> Shown:
    """The properties `shows` of all tests that ran, each with whether every test that has it passed."""
    passed_by_feature: dict[tuple[str, str], bool] = {}
    for case in ElementTree.fromstring(xml).iter("testcase"):
        passed = not any(case.find(verdict) is not None for verdict in ("failure", "error", "skipped"))
        for entry in case.iter("property"):
            if entry.get("name") == "shows":
                client, _, feature = (entry.get("value") or "").partition(ROW_SEPARATOR)
                place = (client, feature)
                passed_by_feature[place] = passed_by_feature.get(place, True) and passed
    return Shown(passed_by_feature=passed_by_feature)


def page(shown: Shown) -> str:
    """docs/compatibility.md."""
    lines = [
        HEAD,
        *clients_table(shown),
        KEYS,
        *facts.partitioners(),
        "\n## What the brokers keep to\n",
        *(f"- {feature}" for feature in shown.features(BROKER) if shown.says(BROKER, feature) == "yes"),
        "",
        *facts_of_code(),
    ]
    return "\n".join(lines) + "\n"


def facts_of_code() -> list[str]:
    """The part of the page that no test has to pass for."""
    return [
        "## Differences from Apache Kafka\n",
        *facts.differences(),
        LEFT_OUT,
        *facts.left_out_apis(),
        "\n## APIs that are served\n",
        *facts.served_apis(),
        SETTINGS,
        *facts.topic_settings(),
    ]


def clients_table(shown: Shown) -> list[str]:
    versions = client_versions()
    head = ["", *(f"{client} {versions[client]}".strip() for client in CLIENTS)]
    rows = [
        [feature, *(shown.says(client, feature) for client in CLIENTS)]
        for feature in shown.features(*CLIENTS)
    ]
    return facts.table(head, rows)


def client_versions() -> dict[str, str]:
    """The versions that the lock files, and the tests' own files, pin. Kcat comes from the system."""
    pinned = dict(pins("runtime")) | dict(pins("test"))
    return {
        "Java": apache_kafka.VERSION,
        "KafkaJS": json.loads(PACKAGES.read_text(encoding="utf-8"))["dependencies"]["kafkajs"],
        "kcat": "",
        **{name: pinned[name] for name in ("confluent-kafka", "aiokafka", "kafka-python")},
    }


def pins(group: str) -> Iterator[tuple[str, str]]:
    for line in (ROOT / "requirements" / f"{group}.txt").read_text(encoding="utf-8").splitlines():
        name, separator, rest = line.partition("==")
        if separator and not line.startswith((" ", "#")):
            yield name, rest.split()[0]


def _place(feature: str) -> tuple[int, str]:
    group = feature.partition(ROW_SEPARATOR)[0]
    return (GROUPS.index(group) if group in GROUPS else len(GROUPS), feature)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
