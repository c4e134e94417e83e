"""Options of the manifests, and their check."""

from __future__ import annotations

import re
from dataclasses import dataclass

from moorage.api.errors import MoorageError

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
NAME_LENGTH = 40
"""Names get suffixes such as `-authentication-reader`, and must stay below 63 characters in total."""
PORT = 10259


class DeployError(MoorageError):
    """An option with an invalid value."""


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """Names, image and size of a deployment."""

    name: str = "moorage"
    """The name of every object, of the lease, and of the profile if there is no configuration."""
    namespace: str = "moorage"
    image: str = ""
    replicas: int = 2
    service_monitor: bool = False
    """For clusters with the Prometheus operator."""
    component: str = "scheduler"
    port: int = PORT
    tls_secret: str = ""
    """The Secret with tls.crt, tls.key and ca.crt; empty to generate a certificate at every start."""

    def check(self) -> None:
        """Raise a DeployError that names the option and the valid values."""
        for option, value in (("--name", self.name), ("--namespace", self.namespace)):
            if len(value) > NAME_LENGTH or not _NAME.fullmatch(value):
                raise DeployError(
                    f"{option} {value!r}: expected at most {NAME_LENGTH} lower-case letters, digits and "
                    f"dashes, not starting or ending with a dash"
                )
        if self.replicas < 1:
            raise DeployError(f"--replicas {self.replicas}: expected at least 1")
        if not self.image or any(c.isspace() for c in self.image):
            raise DeployError(f"--image {self.image!r}: expected a reference such as registry/moorage:1.0")

    @property
    def labels(self) -> dict[str, str]:
        """The labels of every object."""
        return {**self.selector, "app.kubernetes.io/component": self.component}

    @property
    def selector(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": "moorage", "app.kubernetes.io/instance": self.name}
