"""Failed assertions of the machine show what they compared, as those of tests do."""

import pytest

pytest.register_assert_rewrite("tests.properties.machine", "tests.properties.sides")
