"""Tables of the sources that were looked at, in one database in memory."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from assay.errors import UsageError
from assay.view.places import Missing, Place
from assay.view.table import Table


class Tables:
    """Opens the table of a source when it is first asked for, and sees to it that it is up to date.

    Raises:
        UsageError: DuckDB is not installed.
    """

    def __init__(self) -> None:
        try:
            import duckdb
        except ImportError:
            raise UsageError("assay view needs DuckDB: pip install 'assay[view]'") from None
        # What memory does not hold goes to a folder of the process's own.
        self._spilled = tempfile.TemporaryDirectory(prefix="assay-view-")
        self._database = duckdb.connect(
            config={"temp_directory": self._spilled.name, "autoinstall_known_extensions": False}
        )
        self._database.execute("SET parquet_metadata_cache = true")
        self._lock = threading.Lock()
        self._tables: dict[Path, Table] = {}

    def of(self, place: Place) -> Table:
        """Return the table of a run's rollouts or of an evaluation's samples, refreshed.

        Raises:
            Missing: it has no samples.
        """
        if place.kind not in ("run", "evaluation"):
            raise Missing(f"{place.id} has no samples")
        path = place.path
        if place.kind == "run":
            path = path / "rollouts"
        elif path.is_dir():
            path = path / "samples"
        with self._lock:
            table = self._tables.get(path)
            if table is None:
                table = self._tables[path] = Table(self._database, f"samples {len(self._tables)}", path)
        table.refresh()
        if not table.read:
            table.wait_some(2.0)
        return table

    def close(self) -> None:
        self._database.close()
        self._spilled.cleanup()
