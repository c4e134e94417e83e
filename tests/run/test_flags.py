"""The command line of `moorage run`: Go's rules, kube-scheduler's flags, and clear words about mistakes."""

from __future__ import annotations

import pytest

from moorage.api.errors import MoorageError
from moorage.config import ConfigError
from moorage.run.flag_table import FLAGS, GROUPS
from moorage.run.flags import FlagError, parse
from moorage.run.options import configuration_of, gate_warnings, options_of

KUBE_SCHEDULER = """
config write-config-to master version help bind-address secure-port cert-dir tls-cert-file
tls-private-key-file tls-cipher-suites tls-min-version tls-sni-cert-key http2-max-streams-per-connection
disable-http2-serving permit-port-sharing permit-address-sharing authentication-kubeconfig
authentication-skip-lookup authentication-token-webhook-cache-ttl authentication-tolerate-lookup-failure
client-ca-file requestheader-client-ca-file requestheader-allowed-names requestheader-username-headers
requestheader-uid-headers requestheader-group-headers requestheader-extra-headers-prefix
authorization-kubeconfig authorization-always-allow-paths authorization-webhook-cache-authorized-ttl
authorization-webhook-cache-unauthorized-ttl leader-elect leader-elect-lease-duration
leader-elect-renew-deadline leader-elect-retry-period leader-elect-resource-lock leader-elect-resource-name
leader-elect-resource-namespace feature-gates emulated-version min-compatibility-version
show-hidden-metrics-for-version disabled-metrics allow-metric-labels allow-metric-labels-manifest v vmodule
logging-format profiling contention-profiling kubeconfig kube-api-content-type kube-api-qps kube-api-burst
pod-max-in-unschedulable-pods-duration
"""


def test_every_flag_of_kube_scheduler_is_known():
    assert [name for name in KUBE_SCHEDULER.split() if name not in FLAGS] == []


def test_every_flag_is_explained_or_says_why_it_does_nothing():
    assert all(bool(flag.help) != bool(flag.note) for flags in GROUPS.values() for flag in flags)


@pytest.mark.parametrize(
    "args",
    [["--secure-port=7"], ["--secure-port", "7"], ["-v=3", "--secure-port=7"], ["--leader-elect", "--secure-port=7"]],
    ids=" ".join,
)
def test_values_after_an_equals_sign_or_as_the_next_word(args):
    assert parse(args).number("secure-port") == 7


@pytest.mark.parametrize(
    ("word", "on"), [("--leader-elect", True), ("--leader-elect=false", False), ("--leader-elect=T", True)]
)
def test_a_boolean_flag_takes_its_value_only_after_an_equals_sign(word, on):
    assert parse([word]).boolean("leader-elect") is on
    with pytest.raises(FlagError, match='Unexpected argument "false"'):
        parse(["--leader-elect", "false"])


@pytest.mark.parametrize("args", [["-v=4"], ["-v", "4"], ["--v=4"], ["--v", "4"]], ids=" ".join)
def test_verbosity_in_all_its_forms(args):
    assert parse(args).number("v") == 4


def test_lists_may_be_repeated():
    flags = parse(["--feature-gates=A=true", "--feature-gates=B=false,C=true"])
    assert flags.items("feature-gates") == ("A=true", "B=false", "C=true")


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--leader-elct"], 'unknown flag: --leader-elct; did you mean "leader-elect"?'),
        (["-x"], "unknown flag: -x"),
        (["file.yaml"], 'Unexpected argument "file.yaml". `moorage run` takes flags only; see --help.'),
        (["--config"], "flag needs an argument: --config"),
        (["--secure-port=ten"], 'invalid argument "ten" for --secure-port: expected an integer'),
        (["--secure-port=\u0661"], "expected an integer"),
        (["--leader-elect=maybe"], "expected true or false"),
        (["--leader-elect-retry-period=2"], "missing unit"),
        (["--leader-elect-retry-period=-2s"], "not negative"),
        (["--kube-api-qps=nan"], "expected a number"),
        (["--requestheader-client-ca-file=x"], "is not supported: front proxies are not trusted"),
        (["--min-compatibility-version=1.36"], "is not supported: the version of --emulated-version"),
    ],
)
def test_mistakes_are_reported_with_a_remedy(args, text):
    with pytest.raises(FlagError) as caught:
        parse(args)
    assert text in str(caught.value)


def test_all_mistakes_are_reported_together():
    with pytest.raises(FlagError) as caught:
        parse(["--a", "--b", "--secure-port=x"])
    assert len(str(caught.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--contention-profiling=true"], "--contention-profiling has no effect: locks are not measured"),
        (["--config=x", "--profiling=false"], "--profiling is ignored because --config is set; use enableProfiling"),
        (["--vmodule=a=1"], "--vmodule has no effect"),
        (["--config=x", "--kube-api-qps=5"], "--kube-api-qps is ignored because --config is set"),
    ],
)
def test_flags_that_mean_nothing_here_are_accepted_with_a_warning(args, text):
    assert any(text in warning for warning in parse(args).warnings)


def test_flags_win_over_the_file(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaseDuration: 30s, resourceName: from-file}\nclientConnection: {qps: 7}\n"
    )
    flags = parse(
        [f"--config={file}", "--leader-elect-resource-name=mine", "--leader-elect=false", "--kube-api-qps=99"]
    )
    config = configuration_of(flags).config
    assert config.leader_election.resource_name == "mine"
    assert config.leader_election.lease_duration == 30.0
    assert config.leader_election.leader_elect is False
    assert config.client_connection.qps == 7, "deprecated flags are not read beside a file"


def test_without_a_file_the_deprecated_flags_count():
    config = configuration_of(parse(["--kube-api-qps=5", "--kube-api-burst=6"])).config
    assert (config.client_connection.qps, config.client_connection.burst) == (5, 6)
    assert [profile.scheduler_name for profile in config.profiles] == ["default-scheduler"]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["--secure-port=70000"], "--secure-port"),
        (["--port=70000"], "--port: 70000 is not a port"),
        (["--port=10251", "--secure-port=10259"], "--port and --secure-port name different ports"),
        (["--tls-cert-file=x"], "belong together"),
        (["--tls-min-version=VersionTLS10"], "VersionTLS12 or VersionTLS13"),
        (["--allow-configuration-changes", "--insecure-skip-authentication"], "drop --insecure-skip-authentication"),
    ],
)
def test_values_that_do_not_fit_together(args, text):
    with pytest.raises(MoorageError, match=text):
        options_of(parse(args))


def test_the_old_port_is_served_over_https_with_a_warning():
    flags = parse(["--port=10261"])
    assert options_of(flags).serving.port == 10261
    assert ["--port: there is no insecure port" in warning for warning in flags.warnings] == [True]
    assert parse(["--port=0"]).warnings == ()


def test_another_lock_than_leases_is_refused():
    with pytest.raises(MoorageError, match="leases"):
        configuration_of(parse(["--leader-elect-resource-lock=endpoints"]))


def test_unknown_gates_are_refused():
    with pytest.raises(ConfigError, match="unrecognized feature gate"):
        options_of(parse(["--feature-gates=NoSuchGate=true"]))


def test_a_gate_that_is_switched_is_said_to_switch_nothing():
    chosen = options_of(parse(["--feature-gates=SchedulerAsyncAPICalls=true,SchedulerPopFromBackoffQ=true"])).gates
    (warning,) = gate_warnings(chosen)
    assert "SchedulerAsyncAPICalls" in warning


def test_the_defaults_are_safe():
    options = options_of(parse([]))
    serving = options.serving
    assert serving.bind_address == "127.0.0.1"
    assert not serving.skip_authentication
    assert not serving.tolerate_lookup_failure
    assert serving.always_allow_paths == ("/healthz", "/readyz", "/livez")
    assert options.flush_after == 300.0


def test_profiling_is_on_unless_a_flag_or_the_file_says_otherwise(tmp_path):
    file = tmp_path / "off.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nenableProfiling: false\n"
    )
    given = {"": True, "--profiling=false": False, f"--config={file}": False}
    assert {arg: configuration_of(parse([arg] if arg else [])).config.enable_profiling for arg in given} == given
