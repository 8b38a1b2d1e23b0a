"""The environment: makes `.venv` and installs exactly what the lock files name.

Rule: only the standard library, because it runs before anything is installed. An error is one line that says
what to do.
Must not know: what the installed packages are for.
Tests: tests/house/test_environment.py
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCKS_BY_LEVEL = {
    "runtime": ("runtime", "build"),
    "develop": ("runtime", "build", "test", "check"),
}
PYTHON_MINIMUM = (3, 11)
VERSION_CHECK = f"import sys; sys.exit(sys.version_info < {PYTHON_MINIMUM})"


class SetUpError(Exception):
    """The environment cannot be made; the message is the one line that the user needs."""


def main(arguments: Sequence[str]) -> int:
    """`runtime` or `develop` installs that level; `programs` what the tests run beside us."""
    usage = f"usage: environment.py {'|'.join(LOCKS_BY_LEVEL)}|programs"
    try:
        match arguments:
            case [level] if level in LOCKS_BY_LEVEL:
                set_up(level)
            case ["programs"]:
                ensure_kcat()
            case _:
                raise SetUpError(usage)
    except SetUpError as error:
        print(f"tidings set-up: {error}", file=sys.stderr)
        return 1
    return 0


def set_up(level: str) -> None:
    """Make `.venv` if it is missing or broken; install the level's lock files and the project itself."""
    if sys.version_info < PYTHON_MINIMUM:
        raise SetUpError(
            f"Python 3.11 or newer is needed, this is {sys.version.split()[0]} ({sys.executable})"
        )
    print(f"tidings set-up: installing into {VENV.name}, once; a minute at most", file=sys.stderr, flush=True)
    uv_on_path = shutil.which("uv")
    if not succeeds_quietly([str(venv_python()), "-c", VERSION_CHECK]):
        make_venv(uv_on_path)
    uv = uv_on_path or ensure_uv()
    install = [uv, "pip", "install", "--quiet", "--python", str(venv_python())]
    locks = [part for name in LOCKS_BY_LEVEL[level] for part in ("-r", str(lock_file(name)))]
    run([*install, "--require-hashes", *locks])
    # Editable, so that a change in src/ needs no new installation; the build backend is the locked one.
    run([*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])
    stamp(level)


def venv_python() -> Path:
    """The interpreter of the project's own environment."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def lock_file(name: str) -> Path:
    """The lock file of one dependency group."""
    return ROOT / "requirements" / f"{name}.txt"


def stamp(level: str) -> None:
    """Leave the file by which `make` knows that the level is installed; a higher level includes the lower."""
    levels = list(LOCKS_BY_LEVEL)
    for included in levels[: levels.index(level) + 1]:
        (VENV / f".installed-{included}").touch()


def make_venv(uv: str | None) -> None:
    """Create `.venv` with this interpreter; what was there and does not run is replaced."""
    if VENV.exists():
        shutil.rmtree(VENV)
    if uv is not None:
        run([uv, "venv", "--quiet", "--python", sys.executable, str(VENV)])
        return
    if importlib.util.find_spec("ensurepip") is None:
        install_venv_module()
    run([sys.executable, "-m", "venv", str(VENV)])


def install_venv_module() -> None:
    """Debian ships Python without `ensurepip`; the package that has it carries the version in its name."""
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    if not apt_install(package):
        raise SetUpError(
            f"this Python cannot make environments; install it with: sudo apt-get install {package}"
        )


def ensure_uv() -> str:
    """The locked uv, installed by pip into `.venv`; pip itself stays as the interpreter brought it."""
    uv = venv_python().parent / ("uv.exe" if os.name == "nt" else "uv")
    if not succeeds_quietly([str(uv), "--version"]):
        python = str(venv_python())
        if not succeeds_quietly([python, "-m", "pip", "--version"]):
            # An environment that an earlier uv made has no pip, and that uv is gone.
            run([python, "-m", "ensurepip"])
        pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        run([*pip, "--require-hashes", "-r", str(lock_file("bootstrap"))])
    return str(uv)


def ensure_kcat() -> None:
    """The C client is a witness in the tests. Without it they fail, and this line says why beforehand."""
    if shutil.which("kcat") is None and not apt_install("kcat"):
        print(
            "tidings set-up: kcat is missing and could not be installed here, its tests will fail; "
            "install it with: sudo apt-get install kcat (brew install kcat)",
            file=sys.stderr,
        )


def apt_install(package: str) -> bool:
    """Install a Debian package without a question; False where that is not possible."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return False
    quiet_apt = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60"]
    install = [*quiet_apt, "install", "--yes", "--no-install-recommends", package]
    if succeeds(install):
        return True
    return succeeds([*quiet_apt, "update"]) and succeeds(install)


def succeeds(command: Sequence[str]) -> bool:
    """Whether a command that may fail did not. It asks nothing, and what it says goes to stderr."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    finished = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    return finished.returncode == 0


def succeeds_quietly(command: Sequence[str]) -> bool:
    """Whether a program is there, starts and is content; where an environment was moved it does not."""
    try:
        finished = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    except OSError:
        return False
    return finished.returncode == 0


def run(command: Sequence[str]) -> None:
    """Run a command that must succeed."""
    try:
        finished = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise SetUpError(f"cannot run {command[0]}: {error.strerror}") from error
    if finished.returncode != 0:
        raise SetUpError(f"this failed with exit code {finished.returncode}: {' '.join(command)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
