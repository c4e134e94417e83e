"""The options of `moorage up`, read and checked before anything is started."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from moorage.api.errors import MoorageError
from moorage.app.configuration import Configuration, configure, configure_file
from moorage.app.reloading import ConfigurationSource
from moorage.scheduler.assembly import FLUSH_AFTER
from moorage.snapshots.manifests import read_manifest
from moorage.telemetry import logs
from moorage.up import pools, snapshot_objects
from moorage.up.kubeconfig import HOME
from moorage.up.process import Orders

DEFAULT_PORT = 7443
DEFAULT_NODES = 3


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Everything that is needed to start a cluster."""

    orders: Orders
    configuration: Configuration | None
    """None for a cluster without a scheduler."""
    kubeconfig: Path | None = None
    """None for a file name that depends on the port."""
    any_port_will_do: bool = False
    """Whether any free port may be used if the port is in use."""
    source: ConfigurationSource | None = None
    """Where the configuration is reloaded from when it changes; None if it never does."""
    flush_after: float | None = FLUSH_AFTER
    """Seconds after which an unschedulable pod is retried without an event; None for never."""

    ui: bool = False
    """Whether to start the web UI."""

    @classmethod
    def of(
        cls,
        *,
        nodes: int | None = None,
        cluster: Path | None = None,
        config: Path | None = None,
        numa: int = 0,
        apply: tuple[Path, ...] = (),
        snapshot: Path | None = None,
        data_dir: Path | None = None,
        port: int | None = None,
        kubeconfig: Path | None = None,
        scheduler: bool = True,
        ui: bool = False,
        plugin_folders: tuple[str, ...] = (),
        emulated_version: str = "",
    ) -> ClusterPlan:
        """Read the files. A MoorageError or ConfigError names the file and its mistakes."""
        if nodes is not None and cluster is not None:
            raise MoorageError("--nodes and --cluster exclude each other: put the count into the file's pools")
        if config is not None and not scheduler:
            raise MoorageError("--config and --no-scheduler exclude each other: drop one")
        chosen = pools.read(cluster) if cluster is not None else None
        if chosen is None:
            # A kept cluster and a snapshot have nodes; new ones are created only on request.
            usual = DEFAULT_NODES if snapshot is None else 0
            chosen = pools.of_count(usual if nodes is None else nodes)
        verbosity, logging_format = logs.current()
        orders = Orders(
            port=DEFAULT_PORT if port is None else port,
            data_dir=str(data_dir.expanduser()) if data_dir is not None else "",
            pools=chosen,
            only_if_empty=nodes is None and cluster is None,
            numa=numa,
            objects=[obj for path in apply for obj in read_manifest(path)],
            objects_source=", ".join(map(str, apply)),
            snapshot=snapshot_objects.read(snapshot) if snapshot is not None else [],
            snapshot_source=str(snapshot or ""),
            verbosity=verbosity,
            logging_format=logging_format,
        )
        if config is None:
            default = functools.partial(configure, emulated_version=emulated_version)
            made = (default(), ConfigurationSource(default)) if scheduler else (None, None)
            return cls(orders, made[0], kubeconfig, port is None, made[1], ui=ui)
        load = functools.partial(configure_file, config, folders=plugin_folders, emulated_version=emulated_version)
        source = ConfigurationSource(load, (config,), plugins=True)
        return cls(orders, load(), kubeconfig, port is None, source, ui=ui)

    def kubeconfig_at(self, port: int) -> Path:
        if self.kubeconfig is not None:
            return self.kubeconfig
        # Two clusters must not overwrite each other's file.
        name = "kubeconfig" if port == DEFAULT_PORT else f"kubeconfig-{port}"
        return HOME.expanduser() / name
