"""Sparse tensors as containers: what code makes, stores and reads back. No model of a session takes them."""

from __future__ import annotations

import enum
from typing import Any, Sequence

import numpy as np

from .. import _arrays
from .memory import OrtDevice


class OrtSparseFormat(enum.IntEnum):
    """onnxruntime's numbers."""

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


class SparseCooView:
    """Indices of the coordinate format."""

    def __init__(self, indices: np.ndarray):
        self._indices = indices

    def indices(self) -> np.ndarray:
        """Linear ones, or pairs of row and column; read-only."""
        return _read_only(self._indices)


class SparseCsrView:
    """Indices of the compressed rows format."""

    def __init__(self, inner: np.ndarray, outer: np.ndarray):
        self._inner, self._outer = inner, outer

    def inner(self) -> np.ndarray:
        """The column of each value; read-only."""
        return _read_only(self._inner)

    def outer(self) -> np.ndarray:
        """Where each row begins; read-only."""
        return _read_only(self._outer)


class SparseTensor:
    """Values and where they stand in a dense shape. Made by the two functions below, on "cpu" alone."""

    def __init__(self, shape: Sequence[int], values: np.ndarray, view: Any):
        self._shape, self._values, self._view = [int(d) for d in shape], values, view

    @classmethod
    def sparse_coo_from_numpy(cls, dense_shape: Sequence[int], values: np.ndarray, coo_indices: np.ndarray,
                              ort_device: OrtDevice) -> "SparseTensor":
        """Coordinates: as many indices as values, or a pair for each. Shares the memory of numbers."""
        indices = np.asarray(coo_indices, np.int64)
        if indices.size not in (values.size, 2 * values.size):
            raise RuntimeError(f"coo_indices: {indices.size} for {values.size} values; one, or a pair, "
                               "belongs to each")
        return cls(dense_shape, cls._checked(values, ort_device), SparseCooView(indices))

    @classmethod
    def sparse_csr_from_numpy(cls, dense_shape: Sequence[int], values: np.ndarray, inner_indices: np.ndarray,
                              outer_indices: np.ndarray, ort_device: OrtDevice) -> "SparseTensor":
        """Compressed rows: a column for each value, and where each row begins and the last one ends."""
        inner, outer = np.asarray(inner_indices, np.int64), np.asarray(outer_indices, np.int64)
        if inner.size != values.size or outer.size != dense_shape[0] + 1:
            raise RuntimeError(f"{inner.size} inner and {outer.size} outer indices for {values.size} values "
                               f"in {dense_shape[0]} rows; as many as values and one more than rows are due")
        return cls(dense_shape, cls._checked(values, ort_device), SparseCsrView(inner, outer))

    @staticmethod
    def _checked(values: np.ndarray, device: OrtDevice) -> np.ndarray:
        if device.device_type() != OrtDevice.cpu():
            raise RuntimeError("sparse tensors lie on OrtDevice.make('cpu', 0)")
        return np.ascontiguousarray(values)

    def format(self) -> OrtSparseFormat:
        """Coordinates or compressed rows."""
        coo = isinstance(self._view, SparseCooView)
        return OrtSparseFormat.ORT_SPARSE_COO if coo else OrtSparseFormat.ORT_SPARSE_CSRC

    def dense_shape(self) -> list[int]:
        """Sizes, with the zeros."""
        return list(self._shape)

    def data_type(self) -> str:
        """Such as 'sparse_tensor(float)'."""
        text = self._values.dtype.kind in "OUS"
        return "sparse_" + _arrays.type_name(8 if text else _arrays.number_of(self._values.dtype))

    def device_name(self) -> str:
        """'cpu'."""
        return "cpu"

    def values(self) -> np.ndarray:
        """The values that are stored; read-only."""
        return _read_only(self._values)

    def as_coo_view(self) -> SparseCooView:
        """RuntimeError for another format."""
        return self._as(SparseCooView, "COO")

    def as_csrc_view(self) -> SparseCsrView:
        """RuntimeError for another format."""
        return self._as(SparseCsrView, "CSR(C)")

    def _as(self, kind: type, name: str) -> Any:
        if not isinstance(self._view, kind):
            raise RuntimeError(f"This sparse tensor does not contain {name} format; it has "
                               f"{self.format().name}")
        return self._view

    def to_cuda(self, ort_device: OrtDevice) -> "SparseTensor":
        """RuntimeError: there is no such memory."""
        raise RuntimeError("Cuda is not available in this build; sparse tensors lie in 'cpu' memory")
