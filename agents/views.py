"""What agents ask for over HTTP beside the protocols of their own."""

from django.http import HttpResponse
from rest_framework.request import Request

from agents import openapi
from agents.tool_schemas import TOOLS
from tenants.exceptions import ValidationError
from tenants.pages import envelope
from tenants.roles import READERS
from tenants.views import TenantAPIView, answer


class ToolsView(TenantAPIView):
    """The tools as schemas for function calling, to be passed on to a model as they are."""

    roles = {"GET": READERS}
    operations = {"GET": openapi.TOOLS}
    parameters = {"GET": {"format": False}}

    def get(self, request: Request, tenant: str) -> HttpResponse:
        form = self.read_parameters().get("format", "openai")
        # Who is asked to confirm needs a protocol that can ask.
        offered = [tool for tool in TOOLS.values() if not tool.asks]
        match form:
            case "openai":
                return answer(envelope([tool.as_openai() for tool in offered]))
            case "anthropic":
                return answer(envelope([tool.as_anthropic() for tool in offered]))
            case _:
                raise ValidationError("The format is openai or anthropic.", pointer="/query/format")
