"""What was asked how often."""

from django.db import models


class Hit(models.Model):
    """One request."""

    path = models.CharField(max_length=200)

    def __str__(self) -> str:
        return self.path
