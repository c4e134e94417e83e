"""What `moorage up` was asked for, read and judged before anything is started."""

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
from moorage.up.process import Orders

DEFAULT_PORT = 7443
DEFAULT_NODES = 3
HOME = Path("~/.moorage")


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Everything that a cluster is started from."""

    orders: Orders
    configuration: Configuration | None
    """None: without a scheduler."""
    kubeconfig: Path | None = None
    """None: chosen by the port."""
    any_port_will_do: bool = False
    """The port is our own choice: another one is taken when it is in use."""
    source: ConfigurationSource | None = None
    """Where the configuration is read again when it changes; None: it does not."""
    flush_after: float | None = FLUSH_AFTER
    """Seconds after which a parked pod is tried again without a reason; None: never."""

    ui: bool = False
    """With the web UI beside the scheduler."""

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
    ) -> ClusterPlan:
        """Reads the files; a MoorageError or ConfigError says what is wrong with which."""
        if nodes is not None and cluster is not None:
            raise MoorageError(
                "--nodes and --cluster exclude each other: put the count into the file's pools"
            )
        if config is not None and not scheduler:
            raise MoorageError("--config configures the scheduler that --no-scheduler leaves out: drop one")
        chosen = pools.read(cluster) if cluster is not None else None
        if chosen is None:
            # A kept cluster has its nodes, and so has a snapshot; new ones are made when they are asked for.
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
            made = (configure(), ConfigurationSource(configure)) if scheduler else (None, None)
            return cls(orders, made[0], kubeconfig, port is None, made[1], ui=ui)
        load = functools.partial(configure_file, config, folders=plugin_folders)
        source = ConfigurationSource(load, (config,), plugins=True)
        return cls(orders, load(), kubeconfig, port is None, source, ui=ui)

    def kubeconfig_at(self, port: int) -> Path:
        if self.kubeconfig is not None:
            return self.kubeconfig
        # Two clusters side by side must not overwrite each other's file.
        name = "kubeconfig" if port == DEFAULT_PORT else f"kubeconfig-{port}"
        return HOME.expanduser() / name
