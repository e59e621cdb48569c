"""One unprotected model behind FastAPI, written as its tutorials do: for serving.py.

pydantic reads the body, pandas makes a table of it, XGBoost predicts. The body is that of the Open Inference Protocol,
so that the same clients can ask.
"""

from pathlib import Path
from typing import Any

import pandas as pd
import uvicorn
import xgboost
from fastapi import FastAPI
from pydantic import BaseModel

from pacpredict.artifact.artifact import Artifact, model_name
from pacpredict.tables.column import Column


class Tensor(BaseModel):
    name: str
    shape: list[int]
    datatype: str
    data: list[float | str | None]


class Query(BaseModel):
    inputs: list[Tensor]


def run(path: Path, name: str, port: int) -> None:
    """Serve the first model of an artifact until interrupted."""
    uvicorn.run(build(Artifact.open(path), name), host="127.0.0.1", port=port, access_log=False)


def build(artifact: Artifact, name: str) -> FastAPI:
    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(bytearray((artifact.path / model_name(0, "ubj")).read_bytes()))
    columns, labels = {column.name: column for column in artifact.schema.columns}, artifact.classes.values
    app = FastAPI()

    @app.get("/v2/health/live")
    async def live() -> dict[str, bool]:
        return {"live": True}

    # A function that is not async would be run in one of forty threads, which is slower.
    @app.post(f"/v2/models/{name}/infer")
    async def infer(query: Query) -> dict[str, Any]:
        table = pd.DataFrame({each.name: _series(columns[each.name], each.data) for each in query.inputs})
        chances = booster.inplace_predict(table)
        return {"model_name": name, "labels": [labels[int(chance > 0.5)] for chance in chances]}

    return app


def _series(column: Column, values: list[float | str | None]) -> pd.Series:
    if column.kind == "category":
        return pd.Series(pd.Categorical(values, categories=list(column.categories)))
    return pd.Series(values, dtype=float)
