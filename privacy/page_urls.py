"""Routes of a person's page. A host includes them where it likes; `me/` is usual."""

from django.urls import path, re_path
from django.views.generic import RedirectView

from privacy.page_account import SignInPage, SignOutPage
from privacy.page_activity import ActivityPage
from privacy.page_base import UnknownPage
from privacy.page_consents import ConsentsPage, DecisionPage
from privacy.page_erasures import ErasurePage, ForgetPage, ForgetRecordPage, ReceiptPage
from privacy.page_export import DocumentPage, ExportPage, ReadablePage
from privacy.page_records import OverviewPage, RecordPage
from privacy.page_rights import ObjectionPage, StopPage, StopRecordPage

app_name = "consentful_me"

urlpatterns = [
    path("<str:tenant>/", OverviewPage.as_view(), name="overview"),
    path("<str:tenant>/login", SignInPage.as_view(), name="login"),
    path("<str:tenant>/logout", SignOutPage.as_view(), name="logout"),
    path("<str:tenant>/consents", ConsentsPage.as_view(), name="consents"),
    path("<str:tenant>/consents/<str:purpose>", DecisionPage.as_view(), name="decide"),
    path("<str:tenant>/objections/<str:purpose>", ObjectionPage.as_view(), name="object"),
    path("<str:tenant>/stop", StopPage.as_view(), name="stop"),
    path("<str:tenant>/activity", ActivityPage.as_view(), name="activity"),
    path("<str:tenant>/export", ExportPage.as_view(), name="export"),
    path("<str:tenant>/export/json", DocumentPage.as_view(), name="export_json"),
    path("<str:tenant>/export/html", ReadablePage.as_view(), name="export_html"),
    path("<str:tenant>/records/<str:handle>", RecordPage.as_view(), name="record"),
    path("<str:tenant>/records/<str:handle>/stop", StopRecordPage.as_view(), name="stop_record"),
    path(
        "<str:tenant>/records/<str:handle>/forget",
        ForgetRecordPage.as_view(),
        name="forget_record",
    ),
    path("<str:tenant>/forget", ForgetPage.as_view(), name="forget"),
    path("<str:tenant>/forget/<str:purpose>", ForgetPage.as_view(), name="forget_purpose"),
    path("<str:tenant>/erasures/<str:reference>", ErasurePage.as_view(), name="erasure"),
    path("<str:tenant>/erasures/<str:reference>/receipt", ReceiptPage.as_view(), name="receipt"),
    path("<str:tenant>", RedirectView.as_view(pattern_name="consentful_me:overview")),
    re_path(r"", UnknownPage.as_view()),
]
