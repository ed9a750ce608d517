"""What a client wants."""

from django.db import models


class Brief(models.Model):
    """One commission."""

    author = models.CharField(max_length=100)
    text = models.TextField()

    def __str__(self) -> str:
        return self.text
