"""Routes of a person's page. A host includes them where it likes; `me/` is usual."""

from django.urls import path, re_path, register_converter
from django.views.generic import RedirectView

from privacy.page_account import SignInPage, SignOutPage
from privacy.page_activity import ActivityPage
from privacy.page_base import UnknownPage
from privacy.page_consents import ConsentsPage, DecisionPage
from privacy.page_erasures import ErasurePage, ForgetPage, ForgetRecordPage, ReceiptPage
from privacy.page_export import DocumentPage, ExportPage, ReadablePage
from privacy.page_records import OverviewPage, RecordPage
from privacy.page_rights import ObjectionPage, StopPage, StopRecordPage
from privacy.page_wards import PlaceConverter

app_name = "consentful_me"

register_converter(PlaceConverter, "consentful_place")

urlpatterns = [
    path("<consentful_place:tenant>/", OverviewPage.as_view(), name="overview"),
    path("<consentful_place:tenant>/login", SignInPage.as_view(), name="login"),
    path("<consentful_place:tenant>/logout", SignOutPage.as_view(), name="logout"),
    path("<consentful_place:tenant>/consents", ConsentsPage.as_view(), name="consents"),
    path("<consentful_place:tenant>/consents/<str:purpose>", DecisionPage.as_view(), name="decide"),
    path(
        "<consentful_place:tenant>/objections/<str:purpose>", ObjectionPage.as_view(), name="object"
    ),
    path("<consentful_place:tenant>/stop", StopPage.as_view(), name="stop"),
    path("<consentful_place:tenant>/activity", ActivityPage.as_view(), name="activity"),
    path("<consentful_place:tenant>/export", ExportPage.as_view(), name="export"),
    path("<consentful_place:tenant>/export/json", DocumentPage.as_view(), name="export_json"),
    path("<consentful_place:tenant>/export/html", ReadablePage.as_view(), name="export_html"),
    path("<consentful_place:tenant>/records/<str:handle>", RecordPage.as_view(), name="record"),
    path(
        "<consentful_place:tenant>/records/<str:handle>/stop",
        StopRecordPage.as_view(),
        name="stop_record",
    ),
    path(
        "<consentful_place:tenant>/records/<str:handle>/forget",
        ForgetRecordPage.as_view(),
        name="forget_record",
    ),
    path("<consentful_place:tenant>/forget", ForgetPage.as_view(), name="forget"),
    path(
        "<consentful_place:tenant>/forget/<str:purpose>",
        ForgetPage.as_view(),
        name="forget_purpose",
    ),
    path(
        "<consentful_place:tenant>/erasures/<str:reference>", ErasurePage.as_view(), name="erasure"
    ),
    path(
        "<consentful_place:tenant>/erasures/<str:reference>/receipt",
        ReceiptPage.as_view(),
        name="receipt",
    ),
    path("<consentful_place:tenant>", RedirectView.as_view(pattern_name="consentful_me:overview")),
    re_path(r"", UnknownPage.as_view()),
]
