"""What RKNNLite and RKNN have in common: a model, a runtime, and 0 or -1 instead of exceptions."""

from __future__ import annotations

import os
from collections import OrderedDict
from typing import Any, Callable

from .. import _native
from .._errors import StatusError, unreadable
from . import runtime as cores
from .log import Log, UsageError
from .runtime import Runtime

# What a call may fail with; anything else is a defect and is not caught.
FAILURES = (StatusError, OSError, UsageError, RuntimeError, TypeError, ValueError)
PLATFORM_KEY = "corelane.target_platform"
PLATFORMS = ("rk3562", "rk3566", "rk3568", "rk3576", "rk3588")


class RuntimeDoor:
    """Loading, running and releasing, under the names of RKNN's Python packages."""

    NPU_CORE_AUTO = cores.NPU_CORE_AUTO
    NPU_CORE_0 = cores.NPU_CORE_0
    NPU_CORE_1 = cores.NPU_CORE_1
    NPU_CORE_2 = cores.NPU_CORE_2
    NPU_CORE_0_1 = cores.NPU_CORE_0_1
    NPU_CORE_0_1_2 = cores.NPU_CORE_0_1_2
    NPU_CORE_ALL = cores.NPU_CORE_ALL

    def __init__(self, logger: str, verbose: bool, verbose_file: Any):
        self._log = Log(logger, bool(verbose), verbose_file)
        self._model: Any = None
        self._runtime: Runtime | None = None

    def _code(self, where: str, work: Callable[[], None]) -> int:
        """0, or -1 and the reason in the log."""
        try:
            work()
        except FAILURES as problem:
            self._log.error(where, problem)
            return -1
        return 0

    def load_rknn(self, path: Any) -> int:
        """Takes a program file, an ONNX model or, on devices that read it, a vendor-compiled file, which
        init_runtime() opens."""
        return self._code("load_rknn", lambda: self._load(path))

    def _load(self, path: Any) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise UsageError(f"path: expected a path, given {type(path).__name__}")
        name = os.fsdecode(path)
        if not os.path.isfile(name):
            raise UsageError(f"{name!r}: {unreadable(name)}; `corelane compile` makes a program file of an ONNX "
                             "model")
        if os.path.getsize(name) == 0:
            raise UsageError(f"{name}: the file is empty")
        self.release()
        self._model = name

    def _device(self, target: Any, device_id: Any, platform: str = "rk3588") -> str:
        """The device's text: `target` where that is a device, else CORELANE_DEVICE, else the simulator."""
        if device_id is not None:
            self._log.warning("init_runtime", f"device_id {device_id!r} has no effect: boards attached by "
                              "USB or adb are not searched for; CORELANE_DEVICE names the device")
        if target is not None and not isinstance(target, str):
            raise UsageError(f"target: expected a platform such as rk3588 or a device, given {target!r}")
        if target and ":" in target:
            return target
        chosen = os.environ.get("CORELANE_DEVICE") or f"virtual:{(target or platform).lower()}"
        if target:
            self._log.info("init_runtime", f"target {target} runs on {chosen}")
        return chosen

    def _functions(self) -> dict[str, Callable[..., Any]]:
        """Functions of the model's custom operators, by type."""
        return {}

    def _open(self, device: str, core_mask: Any, async_mode: Any) -> None:
        if self._model is None:
            raise UsageError("there is no model yet; call load_rknn() first")
        self.release()
        self._runtime = Runtime(self._model, device, core_mask, bool(async_mode), self._log, self._functions())
        self._log.info("init_runtime", f"on {self._runtime.session.device()['instance']}")

    def inference(self, inputs: Any, data_type: Any = None, data_format: Any = None,
                  inputs_pass_through: Any = None, get_frame_id: bool = False) -> list | None:
        """Float32 arrays, one for each output; None, and the reason in the log, when it fails.

        inputs: a list of arrays. Those of 4-D inputs are N, H, W, C (or H, W, C) unless data_format is
        "nchw", and are normalised with the program's mean and std. inputs_pass_through: 1 for inputs that
        already have the values the network computes with. In async mode the outputs are those of the
        previous call; with get_frame_id the number of their frame follows them."""
        runtime = self._runtime  # release() may come from another thread.
        if runtime is None:
            self._log.error("inference", "there is no runtime; call init_runtime() first")
            return None
        try:
            outputs, frame = runtime.infer(inputs, data_type, data_format, inputs_pass_through)
        except FAILURES as problem:
            self._log.error("inference", problem)
            return None
        return outputs + [frame] if get_frame_id else outputs

    def get_sdk_version(self) -> str | None:
        """A text of several lines; None before init_runtime()."""
        if self._runtime is None:
            self._log.error("get_sdk_version", "there is no runtime; call init_runtime() first")
            return None
        return self._runtime.version()

    def list_support_target_platform(self, rknn_model: Any = None) -> OrderedDict | None:
        """{"filled_target_platform": [what it was built for], "support_target_platform": [where it runs]},
        without a model all platforms; None when the model is missing or broken."""
        filled: list[str] = []
        if rknn_model is not None:
            try:
                if not os.path.isfile(rknn_model):
                    raise UsageError(f"{rknn_model}: {unreadable(rknn_model)}")
                metadata = _native.describe(os.fsdecode(rknn_model))["metadata"]
                filled = [metadata[PLATFORM_KEY]] if PLATFORM_KEY in metadata else []
            except FAILURES as problem:
                self._log.error("list_support_target_platform", problem)
                return None
        found = OrderedDict(filled_target_platform=filled, support_target_platform=list(PLATFORMS))
        self._log.info("list_support_target_platform", str(dict(found)))
        return found

    def release(self) -> None:
        """Ends the runtime once its calls are done; the object may load and start again."""
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            runtime.close()
