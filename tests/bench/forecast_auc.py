"""``forecast_auc``: AUC of 18 forecasters over 1 494 jobs with 2 000 paired bootstraps, and the memory that it takes."""

import time
import tracemalloc

import numpy as np

from service.reporting.drawing import DRAWS
from service.reporting.forecast_auc import drawn_aucs
from tests.bench.report import Result

FORECASTERS, JOBS = 18, 1494
MOST_MB = 500


def forecast_auc() -> Result:
    rng = np.random.default_rng(0)
    labels = rng.random(JOBS) < 0.54
    scores = {f"f{n}": np.round(0.2 * labels + 0.8 * rng.random(JOBS), 2) for n in range(FORECASTERS)}
    began = time.perf_counter()
    found = drawn_aucs(labels, scores, seed=1)
    took = time.perf_counter() - began
    tracemalloc.start()
    drawn_aucs(labels, scores, seed=1, draws=DRAWS // 4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    mb = peak / 1e6
    assert mb < MOST_MB, f"{mb:.0f} MB"
    mean = found.mean([*scores])
    detail = {"draws": DRAWS, "peak_mb": round(mb, 1), "mean_auc": mean.value}
    return Result("forecast_auc", took, "s", goal="<= 10 s, <= 500 MB", detail=detail)
