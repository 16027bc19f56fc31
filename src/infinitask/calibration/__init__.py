"""Post-fit calibration: thresholds, class probabilities, quantile levels and conformal intervals."""

__all__: list[str] = []
