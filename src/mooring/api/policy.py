"""Pod disruption budgets. Preemption reads them; nothing here computes them."""

from mooring.api.meta import Condition, LabelSelector, Object
from mooring.api.record import Int32, Record


class PodDisruptionBudgetSpec(Record):
    """How many of the selected pods must stay, as a number or a percentage."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Record):
    """`disrupted_pods` maps names of pods already being evicted to the time of the eviction."""

    observed_generation: int = 0
    disrupted_pods: dict[str, str] = {}
    disruptions_allowed: Int32 = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Object):
    """A limit on voluntary disruption of the pods of one namespace."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
