"""Routes of a person's page. A host includes them where it likes; `me/` is usual."""

from django.urls import path, re_path
from django.views.generic import RedirectView

from privacy import page_account, page_base, page_consents, page_records

app_name = "consentful_me"

urlpatterns = [
    path("<str:tenant>/", page_records.OverviewPage.as_view(), name="overview"),
    path("<str:tenant>/login", page_account.SignInPage.as_view(), name="login"),
    path("<str:tenant>/logout", page_account.SignOutPage.as_view(), name="logout"),
    path("<str:tenant>/consents", page_consents.ConsentsPage.as_view(), name="consents"),
    path(
        "<str:tenant>/consents/<str:purpose>", page_consents.DecisionPage.as_view(), name="decide"
    ),
    path("<str:tenant>/records/<str:handle>", page_records.RecordPage.as_view(), name="record"),
    path(
        "<str:tenant>/records/<str:handle>/forget",
        page_records.ForgetRecordPage.as_view(),
        name="forget_record",
    ),
    path("<str:tenant>", RedirectView.as_view(pattern_name="consentful_me:overview")),
    re_path(r"", page_base.UnknownPage.as_view()),
]
