"""The agents app: how language-model agents reach what is stored. Holds no data of its own."""

from audit.installation import InstalledApp


class AgentsConfig(InstalledApp):
    default = True
    name = "agents"
    label = "consentful_agents"
    verbose_name = "Agents"
    needs = ("preferences",)
