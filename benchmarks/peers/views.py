"""The record behind Django REST framework, as its own manual would write it."""

from rest_framework.authentication import TokenAuthentication
from rest_framework.permissions import IsAuthenticated
from rest_framework.serializers import ModelSerializer
from rest_framework.viewsets import ModelViewSet

from benchmarks.peers.models import Historied


class HistoriedSerializer(ModelSerializer[Historied]):
    class Meta:
        model = Historied
        fields = "__all__"


class HistoriedViewSet(ModelViewSet[Historied]):
    """Every record by its key in the table."""

    queryset = Historied.objects.all()
    serializer_class = HistoriedSerializer
    authentication_classes = (TokenAuthentication,)
    permission_classes = (IsAuthenticated,)
