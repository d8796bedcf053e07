"""Models are eager within `eager_steps`, and nowhere else."""

import pytest

from tests.kit.eager import eager_steps
from tests.training.small_models import small_best, small_keyvec, small_scorer


@pytest.mark.parametrize("make", [small_best, small_scorer, small_keyvec])
def test_models_of_all_kinds(make):
    with eager_steps():
        inside = make()
    assert inside.run_eagerly
    assert not make().run_eagerly
