"""What is ordered."""

from django.db import models


class Order(models.Model):
    """One loaf, for one customer."""

    customer = models.CharField(max_length=100)
    slicing = models.CharField(max_length=20)

    def __str__(self) -> str:
        return f"{self.customer}: {self.slicing}"
