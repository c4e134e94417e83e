"""Trimaran: scores by measured load, as in scheduler-plugins: TargetLoadPacking, LoadVariationRiskBalancing,
LowRiskOverCommitment and Peaks.

    plugin         what the four have in common: arguments, averages and deviations
    amounts        what pods request and may use at most
    recent_pods    pods that are too new to be measured
    beta           the beta distribution
"""
