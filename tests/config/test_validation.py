"""The rules of upstream's validation, with its words."""

import pytest

from tests.config.builders import load, problems, profile, text

RULES = [
    (
        "parallelism zero",
        "parallelism: 0",
        "parallelism: Invalid value: 0: should be an integer value greater than zero",
    ),
    (
        "parallelism below",
        "parallelism: -1",
        "parallelism: Invalid value: -1: should be an integer value greater than zero",
    ),
    ("burst", "clientConnection: {burst: -1}", "clientConnection.burst: Invalid value: -1: must be non-negative"),
    (
        "lease not positive",
        "leaderElection: {leaseDuration: -1s, renewDeadline: -2s}",
        'leaderElection.leaseDuration: Invalid value: "-1s": must be greater than zero',
    ),
    (
        "renew deadline",
        "leaderElection: {renewDeadline: -2s}",
        'leaderElection.renewDeadline: Invalid value: "-2s": must be greater than zero',
    ),
    (
        "retry period",
        "leaderElection: {retryPeriod: -2s}",
        'leaderElection.retryPeriod: Invalid value: "-2s": must be greater than zero',
    ),
    (
        "renew as long as lease",
        "leaderElection: {leaseDuration: 10s}",
        'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
    ),
    (
        "resource lock",
        "leaderElection: {resourceLock: endpoints}",
        'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
    ),
    (
        "percentage below",
        "percentageOfNodesToScore: -1",
        "percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
    ),
    (
        "percentage above",
        "percentageOfNodesToScore: 101",
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    ),
    (
        "percentage of a profile",
        "profiles: [{percentageOfNodesToScore: 101}]",
        "profiles[0].percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
    ),
    (
        "initial backoff",
        "podInitialBackoffSeconds: 0",
        "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
    ),
    (
        "max backoff",
        "podInitialBackoffSeconds: 11",
        "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
    ),
    ("empty scheduler name", 'profiles: [{schedulerName: ""}]', "profiles[0].schedulerName: Required value"),
    ("nameless among several", "profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName: Required value"),
    (
        "scheduler name twice",
        "profiles: [{schedulerName: a}, {schedulerName: a}]",
        'profiles[1].schedulerName: Duplicate value: "a", as in profiles[0].schedulerName',
    ),
    (
        "nameless plugin",
        "profiles: [{plugins: {score: {enabled: [{weight: 1}]}}}]",
        "profiles[0].plugins.score.enabled[0].name: Required value",
    ),
    (
        "nameless disabled plugin",
        "profiles: [{plugins: {score: {disabled: [{}]}}}]",
        "profiles[0].plugins.score.disabled[0].name: Required value",
    ),
    ("nameless args", "profiles: [{pluginConfig: [{args: {}}]}]", "profiles[0].pluginConfig[0].name: Required value"),
    (
        "args twice",
        "profiles: [{pluginConfig: [{name: a}, {name: a}]}]",
        'profiles[0].pluginConfig[1]: Duplicate value: "a"',
    ),
    (
        "removed plugin at a point",
        "profiles: [{plugins: {filter: {enabled: [{name: EBSLimits}]}}}]",
        'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
        '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1") '
        "(NodeVolumeLimits took its place)",
    ),
    (
        "args of a removed plugin",
        "profiles: [{pluginConfig: [{name: CinderLimits}]}]",
        'profiles[0].pluginConfig[0]: Invalid value: "CinderLimits": was invalid in version "v1" '
        '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1") '
        "(NodeVolumeLimits took its place)",
    ),
    ("extender without URL", "extenders: [{filterVerb: f}]", "extenders[0].urlPrefix: Required value"),
    (
        "extender weight",
        "extenders: [{urlPrefix: http://x, prioritizeVerb: p}]",
        "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
    ),
    (
        "extender weight beyond what totals can hold",
        "extenders: [{urlPrefix: http://x, prioritizeVerb: p, weight: 46116860184273880}]",
        "extenders[0].weight: Invalid value: 46116860184273880: total score could overflow: "
        "weights of extenders add up to 46116860184273879 at most",
    ),
    (
        "weights of extenders beyond it together",
        "extenders: [{urlPrefix: http://x, prioritizeVerb: p, weight: 46116860184273879}, "
        "{urlPrefix: http://y, filterVerb: f, weight: 9}, "
        "{urlPrefix: http://z, prioritizeVerb: p, weight: 1}]",
        "extenders[2].weight: Invalid value: 1: total score could overflow: "
        "weights of extenders add up to 46116860184273879 at most",
    ),
    (
        "two binders",
        "extenders: [{urlPrefix: http://x, bindVerb: b}, {urlPrefix: http://y, bindVerb: b}]",
        'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
    ),
    (
        "managed native resource",
        "extenders: [{urlPrefix: http://x, managedResources: [{name: cpu}]}]",
        'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
    ),
    (
        "managed resource of kubernetes.io",
        "extenders: [{urlPrefix: http://x, managedResources: [{name: kubernetes.io/a}]}]",
        'extenders[0].managedResources[0].name: Invalid value: "kubernetes.io/a": is an invalid extended resource name',
    ),
    (
        "managed resource misspelt",
        "extenders: [{urlPrefix: http://x, managedResources: [{name: a/b/c}]}]",
        'extenders[0].managedResources[0].name: Invalid value: "a/b/c": '
        "a qualified name has at most one '/', between a DNS subdomain and the name",
    ),
    (
        "managed resource twice",
        "extenders: [{urlPrefix: http://x, managedResources: [{name: a.b/c}]}, "
        "{urlPrefix: http://y, managedResources: [{name: a.b/c}]}]",
        'extenders[1].managedResources[0].name: Invalid value: "a.b/c": duplicate extender managed resource name',
    ),
    (
        "two queue sorts",
        "profiles: [{plugins: {queueSort: {enabled: [{name: a}, {name: b}]}}}]",
        "profiles[0].plugins.queueSort.enabled: Invalid value: 2: only one queue sort plugin can be enabled",
    ),
    (
        "queue sort differs",
        "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {enabled: [{name: q}]}}}]",
        'profiles[1].plugins.queueSort: Invalid value: ["q"]: must be the same for all profiles',
    ),
    (
        "queue sort args differ",
        "profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: q}]}}, "
        "pluginConfig: [{name: q, args: {x: 1}}]}, {schedulerName: b, plugins: "
        "{queueSort: {enabled: [{name: q}]}}, pluginConfig: [{name: q, args: {x: 2}}]}]",
        'profiles[1].pluginConfig[0].args: Invalid value: "q": queueSort must be the same for all profiles',
    ),
]


@pytest.mark.parametrize(("body", "problem"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_rule(body, problem):
    assert problem in problems(text(body))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("leaderElection: {leaderElect: false, leaseDuration: 1s, resourceLock: x}", id="no election"),
        pytest.param("percentageOfNodesToScore: 0", id="percentage adaptive"),
        pytest.param("podInitialBackoffSeconds: 10", id="backoff constant"),
        pytest.param(
            "profiles: [{plugins: {multiPoint: {enabled: [{name: EBSLimits}]}}}]",
            id="removed plugin in multiPoint, which upstream does not look at",
        ),
        pytest.param("extenders: [{urlPrefix: http://x, filterVerb: f, weight: 0}]", id="weight without prioritize"),
        pytest.param(
            "extenders: [{urlPrefix: http://x, prioritizeVerb: p, weight: 46116860184273879}]",
            id="the largest weight of an extender",
        ),
        pytest.param(
            "profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: q}]}}}, "
            "{schedulerName: b, plugins: {queueSort: {enabled: [{name: q}]}}}]",
            id="queue sort agreed",
        ),
    ],
)
def test_accepted(body):
    load(text(body))


def test_a_field_that_cannot_be_read_is_reported_once():
    assert problems(profile("plugins: {score: {enabled: [{name: 1}]}}")) == [
        "profiles[0].plugins.score.enabled[0].name: expected a string, got an integer"
    ]
