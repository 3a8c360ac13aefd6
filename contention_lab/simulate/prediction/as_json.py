"""A prediction as plain data, schema 1: names may be added, and are never renamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from contention_lab.simulate.batch import Batch
    from contention_lab.simulate.calibration import Calibration
    from contention_lab.simulate.prediction.forecast import Forecast, Gain
    from contention_lab.simulate.prediction.predict import Option, Prediction

SCHEMA: Final = 1


def prediction_json(found: Prediction, calibration: Calibration) -> dict[str, Any]:
    """Return a prediction as JSON values; times in seconds, intervals of 80 %."""
    recorded, target = found.recorded, found.target
    return {
        "schema": SCHEMA,
        "recorded": {
            "threads": recorded.threads,
            "cores": recorded.cores,
            "time_s": recorded.recorded_ns / 1e9,
            "predicted_s": recorded.predicted.time_ns / 1e9,
            "low_s": recorded.predicted.low_ns / 1e9,
            "high_s": recorded.predicted.high_ns / 1e9,
            "error": recorded.error,
            "missed": recorded.is_missed,
            "outside_s": found.outside_ns / 1e9,
        },
        "cores": found.cores,
        "gil": found.gil and found.batch.gil,
        "compared_at": found.at,
        "crew": {"name": found.crew.name, "threads": found.crew.threads},
        "lock": target and {
            "name": target.label,
            "type": target.type,
            "instances": len(target.ids),
            "sites": [
                {"function": site.function, "places": [*site.places], "share": site.share}
                for site in target.sites
            ],
        },
        "as_recorded": [_forecast(found.batch, one) for one in found.curve],
        "remedies": [_option(found.batch, option) for option in found.options],
        "left_out": [*found.left_out],
        "notes": [*found.batch.notes],
        "calibration": {
            "measured_at": calibration.measured_at or None,
            "host": dict(calibration.host),
        },
    }  # fmt: skip


def _option(batch: Batch, option: Option) -> dict[str, Any]:
    fix = option.fix
    return {
        "fix": fix.text,
        "kind": fix.remedy.kind,
        "about": fix.remedy.about,
        "warning": fix.remedy.warning,
        "lifts_serial_share": fix.remedy.lifts,
        "at_best": fix.at_best,
        "gain": _gain(option.gain),
        "points": [_forecast(batch, one) for one in option.curve],
    }


def _gain(gain: Gain) -> dict[str, float]:
    return {"times": gain.times, "low": gain.low, "high": gain.high, "bound": gain.bound}


def _forecast(batch: Batch, one: Forecast) -> dict[str, Any]:
    limit = one.limit
    return {
        "threads": one.threads,
        "time_s": one.time_ns / 1e9,
        "low_s": one.low_ns / 1e9,
        "high_s": one.high_ns / 1e9,
        "bound_s": limit.least_ns / 1e9,
        "mean_value_analysis_s": limit.mean_value_ns / 1e9,
        "limited_by": limit.set_by,
        "limiting_lock": batch.names.get(limit.lock or 0) if limit.lock else None,
        "locks_used": {
            batch.names.get(id_, "GIL") if id_ else "GIL": share
            for id_, share in sorted(one.used.items(), key=lambda item: -item[1])[:5]
        },
    }
