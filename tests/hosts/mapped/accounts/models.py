"""Users who sign in with an e-mail address, and the organisations they work for."""

import uuid
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models


class UserManager(BaseUserManager["User"]):
    """Makes users from an e-mail address alone."""

    def create_user(self, email: str, password: str | None = None, **more: Any) -> "User":
        user = self.model(email=self.normalize_email(email), **more)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **more: Any) -> "User":
        return self.create_user(email, password, is_staff=True, is_superuser=True, **more)


class User(AbstractBaseUser, PermissionsMixin):
    """A person with a login."""

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    key = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = models.EmailField(unique=True, db_column="mail")
    is_active = models.BooleanField(default=True, db_column="enabled")
    is_staff = models.BooleanField(default=False)

    objects = UserManager()

    class Meta:
        db_table = "people"

    def __str__(self) -> str:
        return self.email


class Organisation(models.Model):
    """A client's company: what Consentful calls a tenant."""

    key = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100)
    short_name = models.SlugField(unique=True)

    def __str__(self) -> str:
        return self.name
