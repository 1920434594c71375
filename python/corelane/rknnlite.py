"""The API of `rknnlite.api.RKNNLite` over a session: code for a board runs on any device of Corelane.

    from corelane.rknnlite import RKNNLite
    lite = RKNNLite()
    lite.load_rknn("model.rknn")
    lite.init_runtime(core_mask=RKNNLite.NPU_CORE_0)
    outputs = lite.inference(inputs=[picture])

`corelane.alias.install("rknnlite")` makes it importable as `rknnlite.api`. docs/apis/rknn-python.md lists
what differs from the original.
"""

from __future__ import annotations

from typing import Any

from ._rknn.door import RuntimeDoor

__all__ = ["RKNNLite"]


class RKNNLite(RuntimeDoor):
    """One model on one core set. Any number of objects in any threads; many threads may call one object.
    Functions return 0, or -1 (or None) with a line in the log, as in the original."""

    def __init__(self, verbose: bool = False, verbose_file: Any = None):
        super().__init__("corelane.rknnlite", verbose, verbose_file)

    def init_runtime(self, target: Any = None, device_id: Any = None, async_mode: bool = False,
                     core_mask: int = RuntimeDoor.NPU_CORE_AUTO) -> int:
        """Opens the model on `target` where that is a device such as "virtual:generic:4" (a text with a colon), else on
        the device that CORELANE_DEVICE names, else on the virtual one of the platform `target`, rk3588 where it
        is None. device_id has no effect."""
        return self._code("init_runtime", lambda: self._open(self._device(target, device_id), core_mask,
                                                             async_mode))

    def list_devices(self) -> tuple[list, list]:
        """Boards attached by USB or adb are not searched for: two empty lists."""
        return [], []
