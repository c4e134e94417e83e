"""Pods: what the API server fills in, and all that it refuses, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.errors import BadRequest, Forbidden, Invalid
from moorage.api.resources import PODS, PRIORITY_CLASSES, SERVICE_ACCOUNTS
from tests.embedded.admission.kit import case, container, named, pod, problems, strict_store

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class TestDefaults:
    def test_a_plain_pod(self):
        stored = strict_store().create(PODS, pod()).raw
        patience = [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        ]
        assert stored["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
        assert stored["spec"] == {
            "containers": [
                {
                    "name": "main",
                    "image": "nginx:1",
                    "imagePullPolicy": "IfNotPresent",
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "resources": {},
                }
            ],
            "dnsPolicy": "ClusterFirst",
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "enableServiceLinks": True,
            "tolerations": patience,
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        }

    @pytest.mark.parametrize(
        ("image", "policy"),
        [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.2", "IfNotPresent"),
            ("registry:5000/nginx", "Always"),
            ("registry:5000/nginx:2", "IfNotPresent"),
            ("nginx@sha256:abc", "IfNotPresent"),
        ],
    )
    def test_images_without_a_fixed_tag_are_always_pulled(self, image, policy):
        stored = strict_store().create(PODS, pod(containers=[{"name": "c", "image": image}])).raw
        assert stored["spec"]["containers"][0]["imagePullPolicy"] == policy

    @pytest.mark.parametrize(
        ("given", "added"),
        [
            case("none of its own", [], 2),
            case("tolerates everything", [{"operator": "Exists"}], 0),
            case("another effect", [{"operator": "Exists", "effect": "NoSchedule"}], 2),
            case("one of the two", [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}], 1),
        ],
    )
    def test_patience_with_nodes_that_are_away(self, given, added):
        stored = strict_store().create(PODS, pod(tolerations=given)).raw
        assert len(stored["spec"]["tolerations"]) == len(given) + added

    def test_requests_default_to_limits(self):
        limits = {"cpu": "2", "memory": "1Gi"}
        stored = strict_store().create(PODS, pod(containers=[container(resources={"limits": limits})])).raw
        assert stored["spec"]["containers"][0]["resources"]["requests"] == limits
        assert stored["status"]["qosClass"] == "Guaranteed"

    def test_the_rest(self):
        given = container(
            ports=[{"containerPort": 80}],
            readinessProbe={"httpGet": {"port": 80}},
            volumeMounts=[{"name": "v", "mountPath": "/v"}],
        )
        volumes = [{"name": "v"}, {"name": "s", "secret": {"secretName": "s"}}]
        spec = strict_store().create(PODS, pod(hostNetwork=True, containers=[given], volumes=volumes)).raw["spec"]
        assert spec["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
        assert spec["containers"][0]["readinessProbe"] == {
            "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        }
        assert spec["volumes"] == [
            {"name": "v", "emptyDir": {}},
            {"name": "s", "secret": {"secretName": "s", "defaultMode": 420}},
        ]

    def test_nulls_count_as_not_given(self):
        raw = pod(nodeSelector=None, schedulerName=None)
        raw["metadata"]["labels"] = None
        stored = strict_store().create(PODS, raw).raw
        assert stored["spec"]["schedulerName"] == "default-scheduler"
        assert "nodeSelector" not in stored["spec"]
        assert "labels" not in stored["metadata"]

    def test_label_keys_are_written_into_selectors(self):
        constraint = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["rev"],
        }
        raw = pod(meta={"labels": {"rev": "7"}}, topologySpreadConstraints=[constraint])
        (found,) = strict_store().create(PODS, raw).raw["spec"]["topologySpreadConstraints"]
        assert found["labelSelector"]["matchExpressions"] == [{"key": "rev", "operator": "In", "values": ["7"]}]

    def test_equal_pods_share_what_was_filled_in(self):
        store = strict_store()
        first, second = store.create(PODS, pod("a")).raw, store.create(PODS, pod("b")).raw
        assert first["spec"]["containers"] is second["spec"]["containers"]


class TestPriority:
    @pytest.mark.parametrize(
        ("spec", "expected"),
        [
            case("from the named class", {"priorityClassName": "high"}, (1000, "Never")),
            case("from the global default", {}, (5, "PreemptLowerPriority")),
            case("as the class says", {"priorityClassName": "high", "priority": 1000}, (1000, "Never")),
        ],
    )
    def test_the_class_decides(self, spec, expected):
        found = self.store().create(PODS, pod(**spec)).raw["spec"]
        assert (found["priority"], found["preemptionPolicy"]) == expected

    @pytest.mark.parametrize(
        ("spec", "words"),
        [
            case(
                "another number",
                {"priorityClassName": "high", "priority": 7},
                "the integer value of priority (7) must not be provided in pod spec; priority "
                "admission controller "
                "computed 1000 from the given PriorityClass name",
            ),
            case(
                "another policy",
                {"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"},
                "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided "
                "in pod spec; "
                "priority admission controller computed Never from the given PriorityClass name",
            ),
            case("no such class", {"priorityClassName": "none"}, "no PriorityClass with name none was found"),
        ],
    )
    def test_the_pod_does_not(self, spec, words):
        with pytest.raises(Forbidden) as caught:
            self.store().create(PODS, pod(**spec))
        assert caught.value.status.message == f'pods "a" is forbidden: {words}'

    def store(self):
        store = strict_store()
        store.create(PRIORITY_CLASSES, named("high", "", value=1000, preemptionPolicy="Never"))
        store.create(PRIORITY_CLASSES, named("usual", "", value=5, globalDefault=True))
        return store


def with_container(**fields: Any) -> dict[str, Any]:
    return {"containers": [container(**fields)]}


def amounts(**fields: Any) -> dict[str, Any]:
    return with_container(resources=fields)


def affinity(kind: str, mode: str, *terms: Any) -> dict[str, Any]:
    return {"affinity": {kind: {mode: list(terms)}}}


NAME_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
GRAMMAR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        case("no containers", {"containers": []}, ["spec.containers: Required value"]),
        case(
            "no name, no image",
            {"containers": [{}]},
            ["spec.containers[0].name: Required value", "spec.containers[0].image: Required value"],
        ),
        case("a bad name", with_container(name="A_b"), [f'spec.containers[0].name: Invalid value: "A_b": {NAME_RULE}']),
        case(
            "two of one name",
            {"containers": [container("c"), container("c")], "initContainers": [container("c")]},
            ['spec.containers[1].name: Duplicate value: "c"', 'spec.initContainers[0].name: Duplicate value: "c"'],
        ),
        case(
            "a bad pull policy",
            with_container(imagePullPolicy="Sometimes"),
            [
                'spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": '
                'supported values: "Always", "IfNotPresent", "Never"'
            ],
        ),
        case(
            "no quantity",
            amounts(requests={"cpu": "lots"}),
            [f'spec.containers[0].resources.requests[cpu]: Invalid value: "lots": {GRAMMAR}'],
        ),
        case(
            "less than nothing",
            amounts(requests={"memory": "-1Gi"}),
            [
                'spec.containers[0].resources.requests[memory]: Invalid value: "-1Gi": '
                "must be greater than or equal to 0"
            ],
        ),
        case(
            "more than the limit",
            amounts(requests={"cpu": "2"}, limits={"cpu": "1500m"}),
            [
                'spec.containers[0].resources.requests: Invalid value: "2": '
                "must be less than or equal to cpu limit of 1500m"
            ],
        ),
        case(
            "half a device",
            amounts(limits={"example.com/gpu": "500m"}),
            [
                'spec.containers[0].resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer',
                'spec.containers[0].resources.requests[example.com/gpu]: Invalid value: "500m": must be an integer',
            ],
        ),
        case(
            "a device without limit",
            amounts(requests={"example.com/gpu": 1}),
            ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"],
        ),
        case(
            "no resource of containers",
            amounts(requests={"pods": "1"}),
            [
                'spec.containers[0].resources.requests[pods]: Invalid value: "pods": '
                "must be a standard resource for containers"
            ],
        ),
        case(
            "bad ports",
            with_container(ports=[{"containerPort": 70000, "name": "UPPER"}, {"hostPort": -1, "protocol": "IP"}]),
            [
                'spec.containers[0].ports[0].name: Invalid value: "UPPER": '
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                'spec.containers[0].ports[0].name: Invalid value: "UPPER": must contain at least one letter (a-z)',
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: "
                "must be between 1 and 65535, inclusive",
                "spec.containers[0].ports[1].containerPort: Required value",
                "spec.containers[0].ports[1].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
                'spec.containers[0].ports[1].protocol: Unsupported value: "IP": supported values: "SCTP", "TCP", "UDP"',
            ],
        ),
        case(
            "one host port twice",
            with_container(ports=[{"containerPort": 1, "hostPort": 80}, {"containerPort": 2, "hostPort": 80}]),
            ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"'],
        ),
        case(
            "mounts without volumes",
            with_container(volumeMounts=[{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/v"}]),
            [
                'spec.containers[0].volumeMounts[0].name: Not found: "v"',
                'spec.containers[0].volumeMounts[1].name: Not found: "v"',
                'spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/v": must be unique',
            ],
        ),
        case(
            "two sources of one volume",
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
        ),
        case(
            "a claim without name",
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            ["spec.volumes[0].persistentVolumeClaim.claimName: Required value"],
        ),
        case(
            "bad words",
            {"restartPolicy": "Maybe", "dnsPolicy": "x"},
            [
                'spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"',
                'spec.dnsPolicy: Unsupported value: "x": supported values: "ClusterFirstWithHostNet", '
                '"ClusterFirst", "Default", "None"',
            ],
        ),
        case(
            "bad numbers",
            {"terminationGracePeriodSeconds": -1, "activeDeadlineSeconds": 0},
            [
                "spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            ],
        ),
        case(
            "a bad node selector", {"nodeSelector": {"-": "x"}}, [f'spec.nodeSelector: Invalid value: "-": {KEY_RULE}']
        ),
        case(
            "a gated pod on a node",
            {"nodeName": "n1", "schedulingGates": [{"name": "g"}, {"name": "g"}]},
            [
                'spec.schedulingGates[1]: Duplicate value: "g"',
                "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
            ],
        ),
        case(
            "bad tolerations",
            {
                "tolerations": [
                    {"operator": "Equal", "value": "x"},
                    {"key": "k", "operator": "Exists", "value": "x"},
                    {"key": "k", "operator": "Is"},
                    {"key": "k", "effect": "NoSchedule", "tolerationSeconds": 5},
                    {"key": "k", "operator": "Gt", "value": "much"},
                ]
            },
            [
                'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists '
                "when `key` is empty, "
                'which means "match all values and all keys"',
                "spec.tolerations[1].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
                'spec.tolerations[2].operator: Unsupported value: "Is": supported values: "Equal", "Exists"',
                "spec.tolerations[3].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
                "`tolerationSeconds` is set",
                'spec.tolerations[4].value: Invalid value: "much": '
                "must be a valid decimal integer in canonical form, within 64 bits",
            ],
        ),
        case(
            "bad spread",
            {
                "topologySpreadConstraints": [
                    {"maxSkew": 0, "whenUnsatisfiable": "Panic", "minDomains": 2},
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a"]},
                    {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"},
                ]
            },
            [
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
                'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Panic": '
                'supported values: "DoNotSchedule", "ScheduleAnyway"',
                "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if "
                "whenUnsatisfiable=DoNotSchedule, not Panic",
                "spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "
                '"{z, DoNotSchedule}"',
                "spec.topologySpreadConstraints[1].matchLabelKeys: Forbidden: "
                "must not be specified when labelSelector is not set",
            ],
        ),
        case(
            "bad node affinity",
            {
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]},
                        PREFERRED: [{"weight": 101, "preference": {"matchFields": [{"key": "x", "operator": "In"}]}}],
                    }
                }
            },
            [
                f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values: "
                "Required value: must be specified when `operator` is 'In' or 'NotIn'",
                f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: Invalid value: 101: must be in the range 1-100",
                f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchFields[0].values: "
                "Required value: "
                "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                f"spec.affinity.nodeAffinity.{PREFERRED}[0].preference.matchFields[0].key: "
                'Invalid value: "x": not a valid field selector key',
            ],
        ),
        case(
            "bad pod affinity",
            affinity("podAntiAffinity", REQUIRED, {"labelSelector": {"matchExpressions": [{"key": "a"}]}}),
            [
                f"spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0].operator: "
                'Invalid value: "": not a valid selector operator',
                f"spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey: Required value: can not be empty",
                f'spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey: Invalid value: "": '
                "name part must be non-empty",
                f'spec.affinity.podAntiAffinity.{REQUIRED}[0].topologyKey: Invalid value: "": {KEY_RULE}',
            ],
        ),
    ],
)
def test_everything_wrong_is_said_at_once(spec, expected):
    assert problems(PODS, pod(**spec)) == expected


def test_the_message_of_one_problem_and_of_several():
    for spec, text in (
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{}]}, "[spec.containers[0].name: Required value, spec.containers[0].image: Required value]"),
    ):
        with pytest.raises(Invalid) as caught:
            strict_store().create(PODS, pod(**spec))
        status = caught.value.status
        assert status.message == f'Pod "a" is invalid: {text}'
        assert status.details is not None
        assert (status.code, status.reason, status.details.kind) == (422, "Invalid", "Pod")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        case("a list where a text belongs", {"spec": {"nodeName": []}}, "spec.nodeName: expected a string, got a list"),
        case("a text where a list belongs", {"spec": {"containers": "x"}}, "spec.containers: expected a list, got a"),
        case("a number for a label", {"metadata": {"labels": {"a": 1}}}, "metadata.labels: expected a string, got a"),
        case(
            "a number too large", {"spec": {"priority": 2**40}}, "spec.priority: expected a whole number <= 2147483647"
        ),
        case("an item that is null", {"spec": {"containers": [None]}}, "spec.containers[0]: expected an object"),
        case("no object", {"spec": 1}, "spec: expected an object, got a whole number"),
    ],
)
def test_a_value_of_the_wrong_type_is_a_bad_request(change, words):
    raw = pod()
    for field, value in change.items():
        raw[field] = {**raw[field], **value} if isinstance(value, dict) else value
    with pytest.raises(BadRequest) as caught:
        strict_store().create(PODS, raw)
    assert caught.value.status.message.startswith(f'Pod in version "v1" cannot be handled as a Pod: {words}')


def test_a_refused_pod_leaves_nothing_behind():
    store = strict_store()
    assert problems(PODS, pod(containers=[]), store)
    assert store.version == 1
    assert store.create(PODS, pod()).version == 2


def test_a_service_account_that_a_pod_names_must_exist():
    store = strict_store()
    with pytest.raises(Forbidden) as caught:
        store.create(PODS, pod(serviceAccountName="robot"))
    assert str(caught.value.status.message) == (
        'pods "a" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found'
    )
    store.create(SERVICE_ACCOUNTS, named("robot"))
    store.create(PODS, pod(serviceAccountName="robot"))
    store.load(PODS, pod("from-a-snapshot", serviceAccountName="elsewhere"))
