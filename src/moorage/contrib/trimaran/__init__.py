"""Trimaran: score nodes by measured load. TargetLoadPacking, LoadVariationRiskBalancing, LowRiskOverCommitment and
Peaks follow pkg/trimaran of scheduler-plugins (KEP-61).

    plugin         the base of the four: arguments, averages and deviations
    amounts        requests and limits of pods
    recent_pods    pods that are too new to be measured
"""
