"""Small objects of the core group: references, namespaces, bindings."""

from mooring.api.meta import Object
from mooring.api.record import Record


class ObjectReference(Record):
    """Points at an object; empty parts are unknown or do not matter."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class NamespaceStatus(Record):
    """Active or Terminating."""

    phase: str = ""


class Namespace(Object):
    """A namespace; schedulers read its labels for namespace selectors."""

    status: NamespaceStatus = NamespaceStatus()


class Binding(Object):
    """The decision itself: POSTed to the pod's binding subresource, with the node as target."""

    target: ObjectReference = ObjectReference()
