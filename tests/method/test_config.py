import dataclasses
import math

import pytest

from artlas import ArtConfig


def test_defaults_are_those_of_the_paper():
    config = ArtConfig()
    assert (config.bases, config.roles, config.hidden, config.layers) == (16, 32, 64, 2)
    assert config.steps == 20
    assert config.top_k is None
    assert config.logit_clamp is None
    assert config.featureless == "constant"
    assert config.sinkhorn_options["scale"] == pytest.approx(1 / (8 * 0.1))


def test_released_differs_where_the_published_code_does():
    released = ArtConfig.released()
    changed = {
        f.name: getattr(released, f.name)
        for f in dataclasses.fields(ArtConfig)
        if getattr(released, f.name) != getattr(ArtConfig(), f.name)
    }
    assert changed == {"top_k": 8, "logit_clamp": 20.0, "featureless": "degree"}
    assert ArtConfig.released(bases=12).bases == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bases": 0}, "bases must be a whole number from 1"),
        ({"roles": 200}, "roles must be a whole number from 1 to 128, got 200"),
        ({"hidden": 64.0}, "hidden must be a whole number"),
        ({"layers": True}, "layers must be a whole number"),
        ({"steps": 0}, "steps must be a whole number"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"coverage_temperature": math.nan}, "coverage_temperature must be positive and finite"),
        ({"responsibility_temperature": math.inf}, "positive and finite"),
        ({"measure_epsilon": -1e-8}, "measure_epsilon must be positive"),
        ({"temperature": "0.1"}, "temperature must be a number, got '0.1'"),
        ({"top_k": 17}, "top_k must be a whole number from 1 to 16, got 17"),
        ({"logit_clamp": 0}, "logit_clamp must be positive"),
        ({"atlas": "shared"}, "atlas must be one of learned, frozen, tied, got 'shared'"),
        ({"featureless": "zeros"}, "featureless must be one of constant, degree"),
        ({"pooling": "all"}, "pooling must be one of mixed, each, got 'all'"),
        ({"diagonal": 1}, "diagonal must be one of False, True, got 1"),
        ({"seed": -1}, "seed must be a whole number from 0"),
    ],
)
def test_every_setting_is_validated(change, message):
    with pytest.raises(ValueError, match=message):
        ArtConfig(**change)


def test_a_config_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ArtConfig().bases = 3
