"""A Hive metastore as a server of its own, out of PySpark's jars."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from cdc_sync.local.java import java_executable
from cdc_sync.local.ports import LOOPBACK, accepts_connections, free_ports
from cdc_sync.local.process import ServerProcess

_SITE = """\
<configuration>
<property><name>javax.jdo.option.ConnectionURL</name><value>jdbc:derby:;databaseName={folder}/db;create=true</value></property>
<property><name>hive.metastore.warehouse.dir</name><value>file:{folder}/own</value></property>
<property><name>hive.metastore.schema.verification</name><value>false</value></property>
<property><name>datanucleus.schema.autoCreateAll</name><value>true</value></property>
<property><name>hive.async.log.enabled</name><value>false</value></property>
{more}</configuration>
"""
NOTHING: Mapping[str, str] = {}
AS_ADVISED: Mapping[str, str] = {
    "hive.metastore.disallow.incompatible.col.type.changes": "false",
    "datanucleus.transactionIsolation": "repeatable-read",
    "hive.hmshandler.retry.attempts": "10",
    "hive.hmshandler.retry.interval": "50ms",
}
"""What `docs/parquet.md` says of a metastore: columns may become others, and an entry is read as of one moment."""
_OPENED = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.lang", "java.net", "java.nio", "java.util")]


def start_metastore(folder: Path, settings: Mapping[str, str] = NOTHING) -> tuple[ServerProcess, str]:
    """Return the server, which takes connections, and its address; what is not said is the default that counts."""
    import pyspark  # the file is imported where there is none

    more = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n" for name, value in settings.items()
    )
    (folder / "hive-site.xml").write_text(_SITE.format(folder=folder, more=more))
    (port,) = free_ports(1)
    command = [
        *(str(java_executable()), "-Xmx300m", "-XX:TieredStopAtLevel=1", "-Dderby.system.durability=test", *_OPENED),
        *("-cp", f"{folder}:{Path(pyspark.__file__).parent}/jars/*"),
        *("org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)),
    ]
    server = ServerProcess("metastore", command, log=folder / "log", cwd=folder)
    try:
        server.wait_until(lambda: accepts_connections(port), timeout=120)
    except BaseException:
        server.kill()
        raise
    return server, f"thrift://{LOOPBACK}:{port}"
