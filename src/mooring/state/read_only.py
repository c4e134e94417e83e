"""Columns as plugins get them: an accidental `+=` on one raises instead of changing the cluster."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

ScalarT = TypeVar("ScalarT", bound=np.generic)


def read_only(column: npt.NDArray[ScalarT]) -> npt.NDArray[ScalarT]:
    """The same memory, write-protected."""
    shown = column.view()
    shown.flags.writeable = False
    return shown
