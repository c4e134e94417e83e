"""Which plugins are served, as which verbs; and the block for kube-scheduler's configuration."""

from __future__ import annotations

import pytest
import yaml

from moorage import config
from moorage.api.errors import MoorageError
from moorage.app.configuration import EMPTY, configure
from moorage.framework import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from moorage.manifests import DeployOptions, to_yaml
from moorage.manifests.bundle import block_of, extender_manifests
from moorage.run.extender import select
from moorage.run.extender.options import ExtenderOptions, config_block
from tests.extender.server_kit import served_of


class Filtering(FilterPlugin):
    name = "Filtering"

    def filter(self, state, pod, node):
        return None


class Early(PreFilterPlugin):
    name = "Early"

    def pre_filter(self, state, pod, nodes):
        return None


class Scoring(ScorePlugin):
    name = "Scoring"

    def score(self, state, pod, node):
        return 0


class Preparing(PreScorePlugin):
    name = "Preparing"

    def pre_score(self, state, pod, nodes):
        return None


class Binding(BindPlugin):
    name = "Binding"

    def bind(self, state, pod, node_name):
        return None


class Late(ReservePlugin, PermitPlugin):
    name = "Late"

    def reserve(self, state, pod, node_name):
        return None

    def permit(self, state, pod, node_name):
        return None


class Both(Filtering, Late):
    name = "Both"


@pytest.mark.parametrize(
    ("plugins", "verbs"),
    [
        ((Filtering,), ("filter", "preempt")),
        ((Early,), ("filter", "preempt")),
        ((Scoring,), ("prioritize",)),
        ((Scoring, Preparing), ("prioritize",)),
        ((Binding,), ("bind",)),
        ((Filtering, Scoring, Binding), ("filter", "prioritize", "preempt", "bind")),
    ],
)
def test_a_verb_is_served_where_a_plugin_remains_for_it(plugins, verbs):
    served = served_of(*plugins)
    assert (served.verbs, set(served.plugins)) == (verbs, {plugin.name for plugin in plugins})
    assert served.warnings == ()


def test_default_plugins_are_omitted_unless_asked_for():
    alone, all_of_them = served_of(Filtering), served_of(Filtering, with_defaults=True)
    assert alone.plugins == ("Filtering",)
    assert {"NodeResourcesFit", "DefaultBinder", "Filtering"} <= set(all_of_them.plugins)
    assert all_of_them.verbs == ("filter", "prioritize", "preempt", "bind")
    assert all_of_them.warnings == (), "kube-scheduler calls its own plugins at all points"


def test_points_that_are_never_called_are_named():
    assert served_of(Both).warnings == (
        'plugin "Both": kube-scheduler does not ask extenders at reserve, permit; what it does there is left out',
    )
    (warning,) = served_of(Filtering, Preparing).warnings
    assert warning.startswith('plugin "Preparing": kube-scheduler does not ask extenders at preScore')


@pytest.mark.parametrize(
    ("plugins", "text"),
    [
        ((), "only kube-scheduler's own plugins, which it runs itself (--with-default-plugins serves them)"),
        ((Late,), "only Late at reserve, permit; enable a plugin at preFilter, filter, score or bind"),
        ((Preparing,), "only Preparing at preScore"),
    ],
)
def test_nothing_to_serve_is_an_error_that_says_so(plugins, text):
    with pytest.raises(MoorageError) as caught:
        served_of(*plugins)
    assert 'profile "default-scheduler" has nothing for an extender to do' in str(caught.value)
    assert text in str(caught.value)


def test_the_profile_is_chosen_by_name():
    plugins = "{filter: {enabled: [{name: Filtering}]}}"
    text = EMPTY + f"profiles: [{{schedulerName: a}}, {{schedulerName: b, plugins: {plugins}}}]"
    configuration = configure(text, plugins=[Filtering], discover=False)
    assert select(configuration, "b").plugins == ("Filtering",)
    with pytest.raises(MoorageError, match="has no profile 'c'; it has a, b"):
        select(configuration, "c")


def loaded(block):
    """As a scheduler reads it."""
    return config.load(EMPTY + block, {}).extenders


def test_the_block_is_one_that_a_scheduler_takes():
    served = served_of(Filtering, Scoring, Binding, weights=(0, 5, 0))
    (extender,) = loaded(config_block(served, ExtenderOptions()))
    assert extender.url_prefix == "http://127.0.0.1:8888"
    assert (extender.filter_verb, extender.prioritize_verb) == ("filter", "prioritize")
    assert (extender.preempt_verb, extender.bind_verb) == ("preempt", "bind")
    assert (extender.weight, extender.node_cache_capable, extender.http_timeout) == (5, True, 5.0)
    assert (extender.enable_https, extender.tls_config) == (False, None)


def test_the_block_names_only_what_is_served():
    (extender,) = yaml.safe_load(config_block(served_of(Filtering), ExtenderOptions()))["extenders"]
    assert list(extender) == ["urlPrefix", "filterVerb", "preemptVerb", "nodeCacheCapable", "httpTimeout"]


@pytest.mark.parametrize(
    ("options", "url", "files"),
    [
        (ExtenderOptions(cert_file="c", key_file="k"), "", {"caFile"}),
        (ExtenderOptions(client_ca_file="ca"), "", {"caFile", "certFile", "keyFile"}),
        (ExtenderOptions(bind_address="0.0.0.0"), "https://extender.example:1", {"caFile"}),
    ],
)
def test_the_block_has_certificates_with_https(options, url, files):
    (extender,) = yaml.safe_load(config_block(served_of(Filtering), options, url))["extenders"]
    assert extender["urlPrefix"] == (url or "https://127.0.0.1:8888")
    assert (extender["enableHTTPS"], set(extender["tlsConfig"])) == (True, files)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"bind_address": "localhost"}, "--bind-address: 'localhost' is not an IP address"),
        ({"port": 70000}, "--port: 70000 is not a port"),
        ({"cert_file": "c"}, "--tls-cert-file and --tls-private-key-file belong together"),
        ({"bind_address": "10.0.0.1"}, "--bind-address: any client that reaches 10.0.0.1 could call the verbs"),
        (
            {"bind_address": "0.0.0.0", "cert_file": "c", "key_file": "k"},
            "set --client-ca-file, or listen on 127.0.0.1",
        ),
        ({"bind_address": "::"}, "set --client-ca-file"),
    ],
)
def test_options_that_cannot_be_obeyed(fields, text):
    with pytest.raises(MoorageError) as caught:
        ExtenderOptions(**fields).check()
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "has_tls"),
    [
        ({}, False),
        ({"bind_address": "::1"}, False),
        ({"bind_address": "10.0.0.1", "client_ca_file": "ca"}, True),
        ({"cert_file": "c", "key_file": "k"}, True),
        ({"client_ca_file": "ca"}, True),
    ],
)
def test_beyond_loopback_there_is_tls_always(fields, has_tls):
    options = ExtenderOptions(**fields)
    options.check()
    assert options.has_tls is has_tls


@pytest.mark.parametrize(
    ("options", "url", "text"),
    [
        (ExtenderOptions(), "extender:1", "--url: 'extender:1' is not a URL"),
        (ExtenderOptions(bind_address="0.0.0.0"), "", "clients cannot connect to 0.0.0.0; set --url"),
    ],
)
def test_a_block_without_an_address_is_refused(options, url, text):
    with pytest.raises(MoorageError) as caught:
        config_block(served_of(Filtering), options, url)
    assert text in str(caught.value)


def objects_of(*plugins):
    served, options = served_of(*plugins), DeployOptions(name="x", namespace="y", image="i")
    return extender_manifests(served, "text", options), block_of(served, options)


def test_the_manifests_grant_reading_alone():
    objects, block = objects_of(Filtering)
    assert [obj["kind"] for obj in objects] == [
        "Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment",
        "Service", "PodDisruptionBudget",
    ]  # fmt: skip
    (role,) = [obj for obj in objects if obj["kind"] == "ClusterRole"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]}]
    assert "--client-ca-file=/etc/moorage-tls/ca.crt" in to_yaml(objects)
    assert loaded(block)[0].url_prefix == "https://x.y.svc:8888"
    assert loaded(block)[0].tls_config.cert_file


def test_binding_is_granted_where_bind_is_served():
    served = served_of(Filtering, with_defaults=True)
    objects = extender_manifests(served, "text", DeployOptions(image="i"))
    rules = [rule for obj in objects if obj["kind"] == "ClusterRole" for rule in obj["rules"]]
    assert any("pods/binding" in rule["resources"] for rule in rules)
