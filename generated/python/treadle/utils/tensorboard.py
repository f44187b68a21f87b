# SPDX-License-Identifier: MIT
# Tangled from the chapter "seeing": edit that, not this file.
# needs: porting
"""Records for TensorBoard, through the package of that name."""
import time
try:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import (
        HistogramProto, Summary, SummaryMetadata)
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.summary.writer.event_file_writer import (
        EventFileWriter)
except ImportError as e:
    raise ImportError("treadle.utils.tensorboard needs the package "
                      f"tensorboard: {e}"
                      ) from e
from ..svg import count

# seeing: class SummaryWriter
class SummaryWriter:
    """Writes what a program tells to a folder of events.

    Numbers, texts and histograms; no images, graphs or hparams, and
    several curves are several tags.
    """

    def __init__(self, log_dir=None):
        self.log_dir = str(log_dir
                           or time.strftime("runs/%b%d_%H-%M-%S"))
        self._file = EventFileWriter(self.log_dir)
        self.flush, self.close = self._file.flush, self._file.close

    def _add(self, tag, step, walltime, **content):
        value = Summary.Value(tag=tag, **content)
        self._file.add_event(Event(
            wall_time=walltime or time.time(), step=step or 0,
            summary=Summary(value=[value])))

    def add_scalar(self, tag, scalar_value, global_step=None,
                   walltime=None):
        """A number, of a curve by its tag."""
        self._add(tag, global_step, walltime,
                  simple_value=float(scalar_value))

    def add_text(self, tag, text_string, global_step=None,
                 walltime=None):
        """A text, as Markdown."""
        self._add(tag, global_step, walltime, metadata=SummaryMetadata(
            plugin_data={"plugin_name": "text"}), tensor=TensorProto(
                dtype="DT_STRING", string_val=[text_string.encode()],
                tensor_shape={"dim": [{"size": 1}]}))

    # seeing: further methods of SummaryWriter
    def add_histogram(self, tag, values, global_step=None, bins=30,
                      walltime=None):
        """How values spread over equal parts of their range."""
        values, low, high, counts = count(values, bins)
        part = (high - low) / bins or 1
        self._add(tag, global_step, walltime, histo=HistogramProto(
            min=low, max=high, num=len(values), sum=sum(values),
            sum_squares=sum(v * v for v in values), bucket=counts,
            bucket_limit=[low + part * (k + 1) for k in range(bins)]))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
