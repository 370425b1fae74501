"""What process 1 of the job's container makes of its arguments, and how a job is asked to stop. Needs no engine."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.containers import engine

_DOCKER = engine.ROOT / "docker"
_OURS = ("cdc-sync", "python", "spark-class", "spark-submit", "java")
_SAYS = '#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n'
_AS_EXECUTOR = {
    "SPARK_HOME": "/spark",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_CLASSPATH": "/opt/cdc_sync/connectors/*",
    "SPARK_EXECUTOR_MEMORY": "2048m",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver-svc:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-7",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "shop-exec-1",
}


def _started(folder: Path, *words: str, **environ: str) -> list[str]:
    """Return the program that is started and its arguments."""
    programs = folder / "programs"
    programs.mkdir()
    for name in _OURS:
        (programs / name).write_text(_SAYS)
        (programs / name).chmod(0o755)
    path = f"{programs}:/usr/bin:/bin"
    done = subprocess.run(
        ["sh", str(_DOCKER / "start"), *words],
        env={"PATH": path, **environ},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("words", [[], ["run", "/etc/cdc_sync/pipeline.yaml"], ["status", "two words", ""]])
def test_words_that_are_no_programs_are_those_of_cdc_sync(words: list[str], tmp_path: Path) -> None:
    assert _started(tmp_path, *words) == ["cdc-sync", *words]


@pytest.mark.parametrize("program", ["python", "spark-class", "spark-submit"])
def test_programs_are_started_as_they_are(program: str, tmp_path: Path) -> None:
    assert _started(tmp_path, program, "-c", "print('two words')") == [program, "-c", "print('two words')"]


def test_a_driver_of_spark_on_kubernetes_submits_in_client_mode_and_binds_to_its_pod(tmp_path: Path) -> None:
    given = ["--properties-file", "/opt/spark/conf/spark.properties", "local:///main.py", "run", "two words"]

    assert _started(tmp_path, "driver", *given, SPARK_DRIVER_BIND_ADDRESS="10.0.0.5") == [
        "spark-submit",
        *("--conf", "spark.driver.bindAddress=10.0.0.5"),
        *("--conf", "spark.executorEnv.SPARK_DRIVER_POD_IP=10.0.0.5"),
        *("--deploy-mode", "client"),
        *given,
    ]


def test_an_executor_of_spark_on_kubernetes_gets_what_its_variables_say(tmp_path: Path) -> None:
    assert _started(tmp_path, "executor", **_AS_EXECUTOR) == [
        "java",
        *("-Xms2048m", "-Xmx2048m"),
        *("-cp", f"/opt/spark/conf:/opt/cdc_sync/connectors/*:/spark/jars/*:{tmp_path}"),
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", "spark://CoarseGrainedScheduler@driver-svc:7078"),
        *("--executor-id", "1"),
        *("--cores", "2"),
        *("--app-id", "spark-7"),
        *("--hostname", "10.0.0.7"),
        *("--resourceProfileId", "0"),
        *("--podName", "shop-exec-1"),
    ]


def test_options_of_java_stay_in_order_and_whole(tmp_path: Path) -> None:
    options = [f"-Dn={n}" for n in range(9)] + ["-Da=two words", "-Db=$HOME `id` \"'*", "-Dc="]
    numbered = {f"SPARK_JAVA_OPT_{n}": option for n, option in enumerate(options)}

    started = _started(tmp_path, "executor", **_AS_EXECUTOR, **numbered)

    assert started[: len(options) + 2] == ["java", *options, "-Xms2048m"]


def test_class_paths_from_elsewhere_are_kept(tmp_path: Path) -> None:
    more = {"HADOOP_CONF_DIR": "/hadoop", "SPARK_EXTRA_CLASSPATH": "/more/*", "SPARK_DIST_CLASSPATH": "/dist"}

    started = _started(tmp_path, "executor", **_AS_EXECUTOR, **more)

    assert started[started.index("-cp") + 1].split(":") == [
        *("/opt/spark/conf", "/hadoop", "/opt/cdc_sync/connectors/*", "/spark/jars/*", "/more/*", "/dist"),
        str(tmp_path),
    ]


def test_a_java_that_is_named_is_taken(tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho the other\n")
    java.chmod(0o755)

    assert _started(tmp_path, "executor", **_AS_EXECUTOR, JAVA_HOME=str(tmp_path / "jdk")) == ["the other"]


def _stop() -> ModuleType:
    spec = importlib.util.spec_from_file_location("stop", _DOCKER / "stop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _process(folder: Path, number: int, *words: str) -> None:
    (folder / str(number)).mkdir()
    (folder / str(number) / "cmdline").write_text("".join(f"{word}\0" for word in words))


def test_the_job_is_told_from_the_jvm_that_started_it(tmp_path: Path) -> None:
    main = "/opt/cdc_sync/lib/python3.11/site-packages/cdc_sync/__main__.py"
    _process(tmp_path, 1, "tini", "--", "/opt/cdc_sync/start", "driver", f"local://{main}", "run", "x.yaml")
    _process(tmp_path, 7, "/usr/bin/java", "-cp", "x", "org.apache.spark.deploy.SparkSubmit", f"local://{main}", "run")
    _process(tmp_path, 8, "python3", main, "run", "x.yaml", "--json")
    _process(tmp_path, 9, "python3", main, "status", "x.yaml")
    _process(tmp_path, 10)

    assert _stop().jobs(tmp_path) == [8]


def test_a_job_that_python_started_itself_is_found_as_well(tmp_path: Path) -> None:
    _process(tmp_path, 2, "/opt/cdc_sync/bin/python", "/opt/cdc_sync/bin/cdc-sync", "run", "x.yaml")

    assert _stop().jobs(tmp_path) == [2]


def test_stopping_asks_and_waits_until_the_job_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), sys.exit(0)))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "ready\n"
        stop = _stop()
        monkeypatch.setattr(stop, "jobs", lambda _: [job.pid] if job.poll() is None else [])

        stop.stop(tmp_path)

        # Its own end, which it takes half a second for; not that of a process which was killed.
        assert job.poll() == 0
