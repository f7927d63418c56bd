"""Partitions of a DataFrame as Arrow: all that uses what PySpark keeps to itself to fetch them, and the public way.

    PartitionJobs   a job computes those partitions that are asked for; a class in its tasks sends them here
    batches_of      the whole: of Spark Connect as its client receives it, or, where the private names that these need
                    are not there, by `mapInArrow` and `toLocalIterator`

The class in the tasks is `PartitionSender.java`: Spark's own compiler makes it, once for each context, and Spark brings
it to the executors as the one class of a jar.
"""

from __future__ import annotations

import contextlib
import logging
import struct
import weakref
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reactive_runtime._core.runtime import primitives
from reactive_runtime.spark._read.listener import Listener
from reactive_runtime.spark._read.spools import Spool
from reactive_runtime.spark._session.spark_errors import is_connected, not_stopped
from reactive_runtime.spark._write.arrow_types import LARGE, arrow_fields

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

__all__ = ["SMALL", "PartitionJobs", "batches_of", "jobs_of"]

SMALL: Final = 1 << 18
"""Bytes of a partition that come with the result of its task, where a job has several partitions."""

_log: Final = logging.getLogger("reactive_runtime.spark")


def jobs_of(what: str, df: DataFrame, ahead: int) -> PartitionJobs | None:
    """The jobs that fetch partitions of a DataFrame; None where Spark can only give the whole. This may run jobs."""
    if is_connected(df):
        return None
    try:
        sender = _sender_of(df.sparkSession.sparkContext)
        settings = _Settings(df)
    except Exception as error:
        not_stopped(what, df.sparkSession)
        _log.warning("%s: rows come by toLocalIterator, since %s", what, error)
        return None
    return PartitionJobs(what, df, ahead, sender, settings)


def batches_of(df: DataFrame) -> Generator[pyarrow.RecordBatch, None, None]:
    """The whole, where partitions can't be asked for."""
    return _connected(df) if _can_connect(df) else _iterated(df)


# -- by partition -------------------------------------------------------------------------------------------------

_SENT, _RETURNED, _TOO_LARGE, _UNREACHABLE = range(4)  # as in PartitionSender.java

_RESULT: Final = struct.Struct(">ii")


class PartitionJobs:
    """Jobs that fetch partitions of a DataFrame, for one subscription; `ahead` of them at once.

    Args:
        what: The operator, for errors.
        df: The DataFrame.
        ahead: How many jobs there may be at once.
        sender: Makes the function that sends a partition, from a host, a port, a secret, and a number of bytes.
        settings: Those of its session.
    """

    def __init__(self, what: str, df: DataFrame, ahead: int, sender: Callable[..., Any], settings: _Settings) -> None:
        self._df = df
        self._settings = settings
        self._context: Any = df.sparkSession.sparkContext
        host, bound = self._hosts()
        self._listener, port = _listening(what, bound, self._may_send())
        try:
            self._rdds = self._planned(ahead, lambda most: sender(host, port, self._listener.secret, most))
        except BaseException:
            self.close()
            raise

    def _planned(self, ahead: int, sender: Callable[[int], Any]) -> list[tuple[Any, Any]]:
        settings, plans = None, list[Any]()
        while settings != (settings := self._forms()):  # what Spark writes has to be what is read
            zone, large = settings
            self._settings.read()
            self.schema: pyarrow.Schema = arrow_fields(self._df.schema, zone, large=large)
            with self._settings.set():
                one = self._batches()  # adaptive execution runs all but the last stage here
                self.count: int = one.getNumPartitions()
                # Where a job fails, Spark ends all that run over the same RDD: those that run at once do not share one.
                plans = [one, *(self._batches() for _ in range(1, min(ahead, self.count)))]
        sent, small = sender(0), sender(SMALL)
        return [tuple(plan.mapPartitionsWithIndex(fn, True) for fn in (sent, small)) for plan in plans]

    def run(self, number: int, partitions: Sequence[int], spools: Sequence[Spool]) -> None:
        """Fetch one partition of any size, or several small ones, into their spools. Returns when that is done.

        Args:
            number: Jobs that run at once have numbers that differ by less than `ahead`.
            partitions: Their numbers. Of several, those that are not small get `found_large` instead.
            spools: One for each.
        """
        sent, small = self._rdds[number % len(self._rdds)]
        if len(partitions) > 1:
            self._collect(small, partitions, spools)
            return
        self._listener.expect(partitions[0], spools[0])
        try:
            self._collect(sent, partitions, spools)
        except BaseException:
            self._listener.settle(partitions[0])  # the rows before the error come before it
            raise
        finally:
            self._listener.forget(partitions[0])

    def stop(self) -> None:
        """Tasks that send batches end with the batch that they are at."""
        self._listener.stop()

    def close(self) -> None:
        """Nothing is received any more."""
        self._listener.close()

    def _collect(self, rdd: Any, partitions: Sequence[int], spools: Sequence[Spool]) -> None:
        from pyspark.util import _load_from_socket

        with self._settings.set():
            served = self._context._jvm.PythonRDD.runJob(self._context._jsc.sc(), rdd, list(partitions))
        with _load_from_socket(served, _Messages()) as messages:  # type: ignore[arg-type]
            for spool in spools:
                became, count = _RESULT.unpack(_next(messages))
                batches = [_next(messages) for _ in range(count)]
                if became == _SENT:
                    spool.done()
                elif became == _TOO_LARGE:
                    spool.found_large()
                else:
                    spool.returned(batches)

    def _forms(self) -> tuple[str, bool]:
        """The settings that decide in which form Spark sends batches: compared before and after Spark plans them."""
        conf: Any = self._df.sparkSession.conf
        large: str = conf.get(LARGE, "false")
        return conf.get("spark.sql.session.timeZone"), large == "true"

    def _batches(self) -> Any:
        java: Any = self._df._jdf
        return java.toArrowBatchRdd().toJavaRDD()

    def _hosts(self) -> tuple[str, str]:
        """By which name tasks find this process, and the address that it listens at."""
        if str(self._context.master).startswith("local"):
            return "127.0.0.1", "127.0.0.1"
        conf = self._context.getConf()
        host = conf.get("spark.driver.host")
        return host, conf.get("spark.driver.bindAddress", host)

    def _may_send(self) -> bool:
        """Whether a task may send: not where what leaves an executor has to be encrypted, which that is not."""
        conf = self._context.getConf()
        local = str(self._context.master).startswith("local")
        return local or not any(conf.get(key, "false") == "true" for key in _ENCRYPTED)


class _Settings:
    """Those of a DataFrame's session, for jobs and plans, as those of an action have them.

    A task has the settings that came with its job as properties, and knows of no session; what is planned takes those
    of the active session. An action of Spark sees to both, and its RDD does not. They are those of the moment of
    `read`: all partitions have the same.
    """

    def __init__(self, df: DataFrame) -> None:
        java: Any = df._jdf
        self._session: Any = java.sparkSession()
        context: Any = df.sparkSession.sparkContext
        self._context: Any = context._jsc.sc()
        self._active: Any = context._jvm.org.apache.spark.sql.classic.SparkSession
        self.read()
        with self.set():  # what is not there is known before a job depends on it
            pass

    def read(self) -> None:
        """Take what the session has now."""
        self._read = self._session.conf().getAllAsJava()

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        """In the block, this thread has them."""
        before = self._context.getLocalProperties()
        properties = before.clone()
        properties.putAll(self._read)
        self._active.setActiveSession(self._session)
        self._context.setLocalProperties(properties)
        try:
            yield
        finally:
            self._context.setLocalProperties(before)


def _listening(what: str, host: str, may_send: bool) -> tuple[Listener, int]:
    """A listener, and its port; 0 where tasks can't use it, and return their batches."""
    try:
        listener = Listener(what, host)
    except OSError:  # it is an address of another machine, which leads here
        return Listener(what, "127.0.0.1"), 0
    return listener, listener.port if may_send else 0


_ENCRYPTED: Final = (
    "spark.network.crypto.enabled",
    "spark.authenticate.enableSaslEncryption",
    "spark.ssl.enabled",
    "spark.ssl.rpc.enabled",
)


def _next(messages: Iterator[Any]) -> Any:
    message = next(messages, None)
    if message is None:
        raise ConnectionError("Spark went away while it served a result")
    return message


class _Messages:
    """Reads what Spark serves into Arrow's own memory, which is given back as soon as it is not needed."""

    def load_stream(self, stream: Any) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark.serializers import read_int

        while True:
            try:
                size = read_int(stream)  # type: ignore[no-untyped-call]
            except EOFError:
                return
            message = pa.allocate_buffer(size)
            if stream.readinto(memoryview(message)) < size:
                raise ConnectionError("Spark went away while it served a result")
            yield message


_SOURCE: Final = Path(__file__).with_name("PartitionSender.java")

_senders: weakref.WeakKeyDictionary[Any, Callable[..., Any]] = weakref.WeakKeyDictionary()  # _senders_lock

_senders_lock = primitives.Lock()  # held while one is made, so that each context has one; that calls Spark only


def _sender_of(context: Any) -> Callable[..., Any]:
    """Makes senders, of a class that the executors of a context have."""
    with _senders_lock:
        if context not in _senders:
            _senders[context] = _made_sender(context)
        return _senders[context]


def _made_sender(context: Any) -> Callable[..., Any]:
    from pyspark import SparkFiles

    java: Any = context._jvm
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE.read_text(encoding="utf-8"))
    folder = Path(SparkFiles.getRootDirectory()) / "reactive-runtime"  # Spark removes it when it is stopped
    folder.mkdir(exist_ok=True)
    jar = folder / "reactive-runtime.jar"
    with zipfile.ZipFile(jar, "w") as file:
        for name, code in dict(compiler.getBytecodes()).items():
            file.writestr(f"{name.replace('.', '/')}.class", bytes(code))
    context._jsc.addJar(str(jar))
    gateway = context._gateway  # and not the context, by which this is found
    (constructor,) = compiler.getClassLoader().loadClass("reactive_runtime.PartitionSender").getConstructors()

    def sender(host: str, port: int, secret: str, most: int) -> Any:
        arguments = gateway.new_array(java.Object, 4)
        for place, value in enumerate((host, port, secret, java.Long.valueOf(most))):
            arguments[place] = value
        return constructor.newInstance(arguments)

    return sender


# -- the whole ----------------------------------------------------------------------------------------------------


def _can_connect(df: Any) -> bool:
    """Whether the client of Spark Connect has what `_connected` needs."""
    return is_connected(df) and hasattr(df, "_plan") and hasattr(df.sparkSession.client, "to_table_as_iterator")


def _connected(df: Any) -> Generator[pyarrow.RecordBatch, None, None]:
    """The result of a DataFrame of Spark Connect, as its client receives it."""
    client, plan = df.sparkSession.client, df._plan
    with contextlib.closing(client.to_table_as_iterator(plan.to_proto(client), plan.observations)) as tables:
        for table in tables:
            if hasattr(table, "to_batches"):  # the first one is the schema
                yield from table.to_batches()


def _iterated(df: DataFrame) -> Generator[pyarrow.RecordBatch, None, None]:
    """The rows of a DataFrame by public names alone: a worker writes each batch as bytes."""
    import pyarrow as pa

    def written(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow as arrow

        for batch in batches:
            sink = arrow.BufferOutputStream()
            with arrow.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            yield arrow.RecordBatch.from_arrays([arrow.array([sink.getvalue().to_pybytes()])], ["batch"])

    names = df.columns
    named = df.toDF(*(f"c{place}" for place in range(len(names))))  # two may have one name
    if not names:  # a worker gets no rows without columns
        named = df.selectExpr("0 as c0")
    # A function in a function travels whole: workers need not have this package.
    for row in named.mapInArrow(written, "batch binary").toLocalIterator(prefetchPartitions=True):
        with pa.ipc.open_stream(row[0]) as stream:
            for batch in stream:
                yield batch.rename_columns(names) if names else batch.select([])
