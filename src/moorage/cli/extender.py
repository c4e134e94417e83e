"""`moorage extender`: plugins behind a stock kube-scheduler."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from moorage.api.errors import MoorageError
from moorage.cli.options import PluginPath, Plugins, ProfileName, configured_by, load_configuration
from moorage.cli.printing import fail
from moorage.run.extender import process, select
from moorage.run.extender.options import PORT, ExtenderOptions, config_block
from moorage.run.extender.selecting import reload_source
from moorage.telemetry import logs

_log = logs.get(__name__)


def extender(
    config: Annotated[
        Path, typer.Option(metavar="FILE", help="A KubeSchedulerConfiguration with the plugins to serve.")
    ],
    profile: ProfileName = "",
    plugins: Plugins = None,
    plugin_path: PluginPath = None,
    with_default_plugins: Annotated[
        bool,
        typer.Option("--with-default-plugins", help="Serve kube-scheduler's own plugins too, which it runs itself."),
    ] = False,
    reload_plugins: Annotated[
        bool, typer.Option("--reload-plugins", help="Reload plugins when their source files change; for development.")
    ] = False,
    kubeconfig: Annotated[
        str, typer.Option(metavar="FILE", help="The cluster to watch; without, as `moorage run`.")
    ] = "",
    bind_address: Annotated[
        str,
        typer.Option(metavar="IP", help="Where to listen; beyond loopback over HTTPS and with --client-ca-file only."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", help="0 takes any that is free.")] = PORT,
    tls_cert_file: Annotated[str, typer.Option(metavar="FILE", help="Serve over HTTPS with this certificate.")] = "",
    tls_private_key_file: Annotated[str, typer.Option(metavar="FILE", help="Its key.")] = "",
    client_ca_file: Annotated[
        str, typer.Option(metavar="FILE", help="Answer clients with a certificate of this authority only.")
    ] = "",
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the block for kube-scheduler, and stop.")
    ] = False,
    url: Annotated[
        str, typer.Option(metavar="URL", help="For --print-config: how kube-scheduler reaches the extender.")
    ] = "",
) -> None:
    """Serve the plugins of a profile to kube-scheduler, as an extender.

    Filter, Score and Bind plugins run unchanged behind a kube-scheduler that cannot be replaced: it asks for
    [bold]filter[/bold], [bold]prioritize[/bold], [bold]preempt[/bold] and [bold]bind[/bold] over HTTP.
    [bold]--print-config[/bold] prints what to add to its configuration. The file of [bold]--config[/bold] is loaded
    again when it changes. Runs until SIGTERM.
    """
    options = ExtenderOptions(kubeconfig, bind_address, port, tls_cert_file, tls_private_key_file, client_ca_file)
    found = configured_by(config, profile, plugins, plugin_path)
    try:
        served = select(found, with_defaults=with_default_plugins)
        options.check()
        if print_config:
            sys.stdout.write(config_block(served, options, url))
            return
        if url:
            fail("--url belongs to --print-config: add it, or leave --url out")
        for warning in served.warnings:
            _log.warning(warning)
        source = reload_source(
            served,
            lambda: load_configuration(config, profile, plugins, plugin_path),
            (config,),
            plugins=reload_plugins,
            with_defaults=with_default_plugins,
        )
        code = process.run(served, options, source)
    except MoorageError as error:
        fail(str(error))
    raise typer.Exit(code)
