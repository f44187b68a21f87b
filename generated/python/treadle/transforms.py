# SPDX-License-Identifier: MIT
# Tangled from the chapter "transforms": edit that, not this file.
# needs: layers
"""What happens to an image or a label before it is in a batch.

Random transforms draw from the default generator of their process, or
from generator=, but not in a worker; manual_seed repeats them.
"""
from operator import index as _index
from . import _C, Tensor
from ._forms import _spread
from ._tensor import _Shown
from .nn import functional as _F
from .utils._workers import get_worker_info as _worker


class _Transform(_Shown):
    def _own(self):
        return None if _worker() else self._generator


def _expect(name, x, good, what):
    if not isinstance(x, Tensor) or not good(x):
        raise TypeError(f"{name}: expected a Tensor {what}, got {x!r}")


class Compose(_Transform):
    """One transform after the other."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class ToTensor(_Transform):
    """An image [H, W, C] of bytes as float32 [C, H, W] in 0..1.

    pic: an array, a Pillow image of mode L, RGB or RGBA, or a Tensor,
    whose dimensions stay.  Only bytes are divided by 255.
    """

    def __call__(self, pic):
        x = pic
        if getattr(pic, "mode", None) in ("L", "RGB", "RGBA"):
            x = _C.tensor(bytearray(pic.tobytes())).view(
                *pic.size[::-1], -1)
        elif hasattr(pic, "__array__") and not isinstance(pic, Tensor):
            x = _C.tensor(pic)
        if x is not pic:
            x = x.reshape(*x.shape[:2], -1).permute(2, 0, 1)
        _expect("ToTensor", x, lambda x: True,
                "an array or image in L or RGB(A)")
        return (x.float() / 255 if x.dtype is _C.uint8 else x
                ).contiguous()


class Normalize(_Transform):
    """(x - mean) / std, by channel of [..., C, H, W].

    A single mean and std serve a tensor of any shape.
    """

    def __init__(self, mean, std, inplace=False):
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, tensor):
        _expect("Normalize", tensor, Tensor.is_floating_point,
                "of real numbers")
        mean, std = (_C.tensor(v, dtype=tensor.dtype)
                     for v in (self.mean, self.std))
        if mean.numel() > 1:
            mean, std = mean.view(-1, 1, 1), std.view(-1, 1, 1)
        if (std == 0).any():
            raise ValueError("Normalize: std evaluated to zero after "
                             f"conversion to {tensor.dtype}")
        x = tensor if self.inplace else tensor.clone()
        return x.sub_(mean).div_(std)


class Flatten(_Transform):
    """All dimensions in one."""

    def __call__(self, x):
        return x.reshape(-1)


class RandomCrop(_Transform):
    """A part of size (height, width) at a random place.

    padding: for all sides, (left and right, top and bottom), or (left,
    top, right, bottom), filled as padding_mode says.
    """

    def __init__(self, size, padding=None, pad_if_needed=False, fill=0,
                 padding_mode="constant", *, generator=None):
        size = _spread(size, 1)
        self.size = size * (3 - len(size))
        self.padding, self.pad_if_needed = padding, pad_if_needed
        self.fill, self.padding_mode = fill, padding_mode
        self._generator = generator
        padding = _spread(padding or 0, 1)
        if len(self.size) != 2 or min(self.size) < 1 \
                or len(padding) not in (1, 2, 4):
            raise ValueError("RandomCrop: expected 1 or 2 sizes > 0, "
                             "1, 2 or 4 paddings, got "
                             f"{size}, {padding}")
        left, top, right, bottom = [*padding] * (4 // len(padding))
        self._margins = [left, right, top, bottom]
    # transforms: methods of a random crop
    def _pad(self, x, margins):
        mode = "replicate" if self.padding_mode == "edge" \
            else self.padding_mode
        return _F.pad(x, margins, mode,
                      self.fill if mode == "constant" else None)

    def __call__(self, img):
        _expect("RandomCrop", img, lambda x: x.ndim > 1, "[..., H, W]")
        x = self._pad(img, self._margins) if any(self._margins) else img
        (h, w), (m, n) = self.size, x.shape[-2:]
        if self.pad_if_needed and (h > m or w > n):
            x = self._pad(x, [max(w - n, 0)] * 2 + [max(h - m, 0)] * 2)
        rooms = [x.shape[-2] - h, x.shape[-1] - w]
        if min(rooms) < 0:
            raise ValueError(f"RandomCrop: {(h, w)} is larger than the "
                             f"image, {(m, n)}")
        top, left = (0 if room == 0 else _C.randint(
            0, room + 1, (1,), generator=self._own()).item()
            for room in rooms)
        return x[..., top:top + h, left:left + w]


class RandomHorizontalFlip(_Transform):
    """Mirrored with probability p, left and right."""

    def __init__(self, p=0.5, *, generator=None):
        if not 0 <= p <= 1:
            raise ValueError("RandomHorizontalFlip: p must be a "
                             f"probability, got {p}")
        self.p, self._generator = p, generator

    def __call__(self, img):
        _expect("RandomHorizontalFlip", img, Tensor.dim, "[..., W]")
        coin = _C.rand(1, generator=self._own()).item()
        return img.flip(-1) if coin < self.p else img


class OneHot(_Transform):
    """A class as a vector of num_classes with a single one."""

    def __init__(self, num_classes, dtype=_C.float32):
        self.num_classes, self.dtype = num_classes, dtype

    def __call__(self, label):
        return _F.one_hot(_C.tensor(_index(label)),
                          self.num_classes).to(self.dtype)
