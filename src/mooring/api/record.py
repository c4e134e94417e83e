"""The base of every typed Kubernetes value: an immutable record with camelCase names on the wire.

Fields nobody in a scheduler reads are left out of the records and skipped while decoding, so a record is
not a complete copy of the object it came from: write back with patches, never with a full update.
"""

from typing import Annotated, TypeAlias, dataclass_transform

import msgspec

# The API's integer widths. A number outside is refused while decoding, not by an array three layers up.
Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


# The decorator is for type checkers only: it tells them that subclasses inherit `frozen` and `kw_only`.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Record(
    msgspec.Struct,
    frozen=True,
    gc=False,  # records never form cycles; keeping them out of the collector matters at 100,000 pods
    kw_only=True,
    omit_defaults=True,
    rename="camel",
):
    """An immutable value. Attributes are snake_case, wire names camelCase; unknown fields are ignored."""
