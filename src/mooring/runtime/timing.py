"""Scoring with a watch on each plugin, for the cycles in which plugins are timed one by one."""

from __future__ import annotations

from typing import Any

from mooring.framework.status import SUCCESS, Status
from mooring.runtime.score_board import Scores
from mooring.runtime.score_steps import ScoreStep
from mooring.runtime.scoring import Scoring
from mooring.telemetry.metrics import ProfileMeter


class TimedScoring(Scoring):
    """The same scores; how long each plugin took is told to the meter."""

    def __init__(self, meter: ProfileMeter, *args: Any) -> None:
        super().__init__(*args)
        self._meter = meter

    def score(self, step: ScoreStep) -> tuple[Scores, Status]:
        began = self._meter.metrics.now()
        raw, status = super().score(step)
        self._tell(step, "Score", began, status)
        return raw, status

    def normalize(self, step: ScoreStep, raw: Scores) -> tuple[Scores, Status]:
        began = self._meter.metrics.now()
        normalized, status = super().normalize(step, raw)
        self._tell(step, "ScoreExtensionNormalize", began, status)
        return normalized, status

    def _tell(self, step: ScoreStep, point: str, began: float, status: Status) -> None:
        seconds = self._meter.metrics.now() - began
        if status is SUCCESS:
            self._meter.plugin(step.name, point, seconds)
        else:
            self._meter.plugin(step.name, point, seconds, status.code.label)
