"""Writing in a thread of its own: while one batch is encoded and written, the next is being packed."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa


class BackgroundWriter:
    """Passes record batches on to a file, one at a time, and waits only when the one before is not done.

    Args:
        file: has `write(batch)` and `close()`, as pyarrow's writers do; it is closed with this writer.

    Example:
        >>> sink = pa.BufferOutputStream()
        >>> batch = pa.record_batch({"ids": [1, 2]})
        >>> with BackgroundWriter(pa.ipc.new_stream(sink, batch.schema)) as writer:
        ...     writer.write(batch)
        >>> pa.ipc.open_stream(sink.getvalue()).read_all()["ids"].to_pylist()
        [1, 2]
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._pending: Future[None] | None = None

    def __enter__(self) -> BackgroundWriter:  # noqa: PYI034  # nobody inherits from it
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the batch soon; raise what went wrong with the one before."""
        self._wait()
        self._pending = self._thread.submit(self._file.write, batch)

    def close(self) -> None:
        """Finish the file; raise what went wrong with the last batch."""
        try:
            self._wait()
        finally:
            self._thread.shutdown()
            self._file.close()

    def _wait(self) -> None:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            pending.result()
