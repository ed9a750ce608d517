def test_smoke(world):
    a = world.alice.write("me", "nickname", None)
    assert a.status == 201, a
    assert a.json["scope"] == "user::alice"
    assert world.alice.give("me", "support").status == 200
    print(a.json)
