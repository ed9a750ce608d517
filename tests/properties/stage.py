"""Who takes part, what is declared, and what may be asked: all that the machine draws from."""

from hypothesis import strategies as st

from tests.factories import CATALOG
from tests.properties.model import ON_CONSENT, Rule, Who

WHO = {
    who.name: who
    for who in (
        Who("alice", "member", me="alice"),
        Who("bob", "member", me="bob"),
        Who("agent", "agent"),
        Who("bound", "agent", me="alice", behalf="alice"),
        Who("operator", "operator"),
        Who("auditor", "auditor"),
    )
}
#: What housekeeping and the tenant's owner appear as.
SYSTEM = Who("system", "system")

#: Undeclared keys rest on a contract in personal scopes, are shared in projects, and are refused
#: in the global scope. `tone` is served by a purpose that may change.
UNDECLARED = {"user": "service", "project": True, "repo": True, "branch": True, "global": False}
THEME = Rule("service", values=("light", "dark", None))
RULES: dict[str, dict[str, Rule]] = {
    "user": {
        "tone": Rule("support"),
        "banner": Rule("ads"),
        "limited": Rule("service", default_ttl=60, most_ttl=120),
        "staff_note": Rule("service", writers=frozenset({"operator"})),
        "theme": THEME,
        "": Rule("service"),
    },
    "project": {
        "policy": Rule("service", writers=frozenset({"operator"})),
        "theme": THEME,
        "": Rule(),
    },
    "global": {"theme": THEME},
}
NOTICES = {
    purpose["slug"]: purpose["notices"][0]["text"]
    for purpose in CATALOG["purposes"]
    if purpose["slug"] in ON_CONSENT
}


def weighted[T](**weights: int) -> st.SearchStrategy[str]:
    """Draw a word, as often as its number says."""
    return st.sampled_from([word for word, weight in weights.items() for _ in range(weight)])


def seldom[T](strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.one_of(st.none(), st.none(), strategy)


#: The second tenant is there to be left alone, mostly: its trail is looked at after every step.
sides = st.sampled_from([0, 0, 0, 0, 1])
people = st.sampled_from([*WHO.values()])
scopes = st.sampled_from(
    ["me", "me", "user::alice", "user::bob", "user::carol", "project::x", "global"]
)
#: Who works where, mostly where it may: requests that no role allows teach little.
LIKELY = [
    *[("alice", "me")] * 4, ("alice", "user::alice"), ("alice", "project::x"), ("alice", "global"),
    ("bob", "me"), *[("agent", "user::alice")] * 2, ("agent", "user::carol"), ("agent", "project::x"),
    *[("bound", "me")] * 2, *[("operator", "user::alice")] * 2, ("operator", "user::carol"),
    ("operator", "project::x"),
]  # fmt: skip
_likely = st.sampled_from([(WHO[name], scope) for name, scope in LIKELY])
places = st.one_of(_likely, _likely, _likely, st.tuples(people, scopes))

#: Whose consent and data are asked about, by whom.
_concerned = st.sampled_from(
    [
        (WHO[name], person)
        for name, person in (
            ("alice", "me"), ("alice", "alice"), ("bob", "me"), ("operator", "alice"),
            ("operator", "carol"), ("auditor", "alice"), ("agent", "alice"), ("bound", "me"),
        )
    ]
)  # fmt: skip
concerned = st.one_of(
    _concerned,
    _concerned,
    st.tuples(people, st.sampled_from(["me", "alice", "bob", "carol"])),
)
deciders = st.one_of(st.just((WHO["alice"], "me")), st.just((WHO["alice"], "me")), concerned)

keys = weighted(tone=4, banner=2, limited=2, note=2, theme=2, staff_note=1, policy=1)
purposes = st.sampled_from(ON_CONSENT)
reasons = st.sampled_from(["asked by mail", "asked by mail", None])
values = st.sampled_from(["light", "light", "dark", None, "brief", 1, True, [1], {"a": 1}])
#: Seconds from now; 0 is this very moment, which has passed already.
delays = st.sampled_from([0, 1, 60, 120, 121, 3600])
deadlines = st.one_of(
    st.just({}),
    st.just({}),
    st.sampled_from([1, 60, 120, 121, None]).map(lambda ttl: {"ttl_seconds": ttl}),
    delays.map(lambda seconds: {"expires_at": seconds}),
)
#: What Alice has consented to at first, and for how long.
beginnings = st.fixed_dictionaries(
    {}, optional={purpose: st.sampled_from([None, 60, 3600]) for purpose in ON_CONSENT}
)
whose = weighted(newest=4, older=2, foreign=1, unknown=1)
writes = st.fixed_dictionaries(
    {
        "value": values,
        "mode": weighted(create=3, if_none_match=1, replace=4, any=1, upsert=3),
        "revision": whose,
        "in_header": st.booleans(),
    }
)
extras = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.sampled_from([["a"], ["a", "b"], []]),
        "metadata": st.sampled_from([{"m": 1}, {}]),
        "detail": st.just("said so"),
    },
)
operations = st.lists(
    st.fixed_dictionaries(
        {
            "op": weighted(put=3, get=1, delete=2),
            "scope": scopes,
            "key": keys,
            "value": values,
            "mode": weighted(create=1, replace=1, upsert=3),
            "revision": whose,
            "deadline": deadlines,
        }
    ),
    min_size=1,
    max_size=4,
)
decisions = st.fixed_dictionaries(
    {
        "decision": weighted(given=3, withdrawn=2, refused=1),
        "version": st.sampled_from([1, 1, 2, 3, None]),
        "expires_at": seldom(delays),
        "evidence": st.sampled_from(["by mail", "by mail", None]),
        "entry": seldom(st.sampled_from(["newest", "older"])),
    }
)
