"""What speed is compared with, as a Django app: it has tables."""

from django.apps import AppConfig


class PeersConfig(AppConfig):
    name = "benchmarks.peers"
    label = "peers"
