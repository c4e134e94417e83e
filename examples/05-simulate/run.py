"""Compares two scheduler configurations on one scenario: do large pods wait less when small ones are packed?"""

from __future__ import annotations

from pathlib import Path

from moorage import Simulation

HERE = Path(__file__).parent


def main() -> None:
    print("config   seed  largestPod  large pods that waited  longest wait")
    for name in ("spread", "packed"):
        for seed in (1, 2):
            result = Simulation(HERE / "scenario.yaml", config=HERE / f"{name}.yaml", seed=seed).run()
            assert result.holds, result.failed
            waits = [placed.wait for placed in result.placements() if "training" in placed.pod]
            waited = sum(wait > 0 for wait in waits)
            largest = result.mean("largestPod")
            print(f"{name:8} {seed:4} {largest:11.2f} {waited:13} of {len(waits):2} {max(waits) / 60:14.0f} min")


if __name__ == "__main__":
    main()
