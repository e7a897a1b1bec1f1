"""MLflow tracking, https://mlflow.org/docs/latest/ml/tracking."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from assay.loggers.base import About, library
from assay.registry import part

TAG = "assay.id"
PARAMETERS, METRICS, LONGEST = 100, 1000, 6000
"""Of one call, and characters of a parameter's value: what MLflow's servers take."""


@part("logger", "mlflow")
class MLflow:
    """MLflow: metrics by step, rollouts as JSON tables among the artifacts, the configuration as parameters.

    Args:
        uri: of the tracking store: http://..., or sqlite:///FILE; the environment's MLFLOW_TRACKING_URI, or else
            mlflow.db beside the run's folder, which `mlflow ui --backend-store-uri sqlite:///runs/mlflow.db` shows.
        experiment: what runs that belong together share.
        name: of the run; that of its folder if left out.
        rows: responses of a step in its table; 0 for no tables.
    """

    def __init__(self, uri: str | None = None, experiment: str = "assay", name: str | None = None, rows: int = 16):
        self.mlflow = library("mlflow", "mlflow")
        self.entities = library("mlflow.entities", "mlflow")
        logging.getLogger("mlflow").setLevel(logging.WARNING)  # it tells of every table of a new database
        logging.getLogger("alembic").setLevel(logging.WARNING)
        library("sqlalchemy", "mlflow")
        self.uri, self.experiment, self.name, self.rows = uri, experiment, name, rows

    def start(self, about: About) -> None:
        beside = about.folder.absolute().parent
        uri = self.uri or os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{beside / 'mlflow.db'}"
        self._client = self.mlflow.MlflowClient(tracking_uri=uri)
        found = self._client.get_experiment_by_name(self.experiment)
        if found is None:
            # Artifacts of a database would lie in whatever folder the process runs in.
            place = None if "://" in uri and not uri.startswith("sqlite") else (beside / "mlartifacts").as_uri()
            experiment = self._client.create_experiment(self.experiment, artifact_location=place)
        else:
            experiment = found.experiment_id
        begun = self._client.search_runs([experiment], f"tags.`{TAG}` = '{about.id}'", max_results=1)
        if begun:
            self._id = begun[0].info.run_id
            self._client.update_run(self._id, status="RUNNING")
            return
        self._id = self._client.create_run(
            experiment, run_name=self.name or about.name, tags={TAG: about.id}
        ).info.run_id
        parameters = [
            self.entities.Param(_named(k), v if isinstance(v, str) else json.dumps(v)[:LONGEST])
            for k, v in about.flat().items()
            if v is not None
        ]
        for first in range(0, len(parameters), PARAMETERS):
            self._client.log_batch(self._id, params=parameters[first : first + PARAMETERS])

    def metrics(self, stage: str, step: int, values: Mapping[str, float]) -> None:
        now = int(time.time() * 1000)
        rows = [
            self.entities.Metric(_named(f"{stage}/{k}"), float(v), now, step)
            for k, v in values.items()
            if not math.isnan(v)
        ]
        for first in range(0, len(rows), METRICS):
            self._client.log_batch(self._id, metrics=rows[first : first + METRICS])

    def table(self, name: str, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        columns = list(rows[0])
        table = {"columns": columns, "data": [[row[c] for c in columns] for row in rows]}
        self._client.log_text(self._id, json.dumps(table, default=str), f"{name}/step-{step:06d}.json")

    def close(self) -> None:
        self._client.set_terminated(self._id)


def _named(key: str) -> str:
    """Return a name that MLflow takes: pass@1 has a sign that it does not, and so may a source's label."""
    return re.sub(r"[^\w\-. :/]", "_", key.replace("@", "_at_"))
