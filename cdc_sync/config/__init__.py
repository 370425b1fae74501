"""The configuration: typed YAML that refuses what it does not understand, and says where."""

from cdc_sync.config.load import load_config, parse_config
from cdc_sync.config.models import Config, Job, Limits, Pipeline, Spark
from cdc_sync.config.routes import route
from cdc_sync.config.secrets import Secret, redact
from cdc_sync.config.sources import Connector, Flattened, Kafka, Registry
from cdc_sync.config.tables import TableRule
from cdc_sync.config.target import Catalog, Target
from cdc_sync.core.migration.routes import Clash, Route, TargetName, check_routes

__all__ = [
    "Catalog",
    "Clash",
    "Config",
    "Connector",
    "Flattened",
    "Job",
    "Kafka",
    "Limits",
    "Pipeline",
    "Registry",
    "Route",
    "Secret",
    "Spark",
    "TableRule",
    "Target",
    "TargetName",
    "check_routes",
    "load_config",
    "parse_config",
    "redact",
    "route",
]
