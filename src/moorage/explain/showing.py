"""Details as people read them."""

from __future__ import annotations

from moorage.framework.optional import Detail, figure


def detail_text(detail: Detail) -> str:
    """One detail on one node: `cpu: asks 2, 500m free, 1500m short`."""
    asked, there = figure(detail.asked, detail.unit), figure(detail.there, detail.unit)
    parts = [f"asks {asked}"] if asked else []
    parts += [f"there {there}"] if there else []
    parts += [f"{figure(detail.missing, detail.unit)} short"] if detail.missing is not None else []
    parts += [f"pods {', '.join(detail.pods)}"] if detail.pods else []
    return f"{detail.subject}: {', '.join(parts)}" if parts else detail.subject
