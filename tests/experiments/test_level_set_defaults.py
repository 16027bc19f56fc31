"""The study of the defaults measures what it says, and its page holds its numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import level_set_defaults as study
from experiments.tables import read_csv

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_the_band_is_that_of_two_samples() -> None:
    rng = np.random.default_rng(0)
    # the threshold is an order statistic of n uniforms: the share outside is that statistic, counted among new rows
    outside = rng.binomial(400, rng.beta(5, 95, size=20_000)) / 400
    assert np.mean(np.abs(outside - 0.05) <= study.band(0.05, 99, 400)) == pytest.approx(0.95, abs=0.02)


def test_rows_of_the_fit_are_not_new() -> None:
    for law in study.LAWS:
        X, new = study.sample(law, 100, 300, seed=1)
        assert X.shape == (100, new.shape[1])
        assert len(new) == 300
        assert not set(map(bytes, X)) & set(map(bytes, new)) or law == "digits"
    normal, other = study.inliers_and_outliers("breast cancer")
    assert (len(normal), len(other)) == (357, 212)


@pytest.mark.slow
def test_units_and_their_report(tmp_path: Path) -> None:
    settings = study.settings(True)
    units = [u for u in study.units(True) if u["seed"] == 0]
    records = [{"unit": unit, "result": study.work(unit, settings), "seconds": 1.0} for unit in units]
    areas, shares = records[0]["result"], records[1]["result"]
    assert areas["InfiniteOneClassSVM"] >= areas["OneClassSVM"] - 0.005
    assert shares["outside"] < shares["threshold as fitted"]
    files = study.report(records, tmp_path, settings)
    assert [path.suffix for path in files] == [".csv", ".csv", ".md"]
    page = files[-1].read_text()
    assert f"| digit 0 | {areas['InfiniteOneClassSVM']:.3f} |" in page
    assert f"| mixture | 100 | {shares['outside']:.3f} |" in page


def test_the_stored_results_hold_what_the_defaults_promise() -> None:
    for row in read_csv(RESULTS / "level_set_defaults_auc.csv"):
        assert float(row["InfiniteOneClassSVM"]) >= float(row["OneClassSVM"]) - 0.005, row["set"]
    rows = read_csv(RESULTS / "level_set_defaults.csv")
    assert {(row["law"], int(row["n"])) for row in rows} == {(law, n) for law in study.LAWS for n in study.SIZES}
    for row in rows:
        # of ten shares, nine and a half are in a band of 95%; fewer than seven would be a surprise in one of 1000 cases
        assert int(row["in band"]) >= 0.7 * int(row["seeds"]), row
