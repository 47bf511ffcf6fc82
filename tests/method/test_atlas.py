import pytest
import torch

from artlas import ART, ArtConfig


def test_relations_are_hollow_symmetric_and_bounded():
    B = ART().atlas.relations()
    assert B.shape == (16, 32, 32)
    assert torch.equal(B, B.transpose(1, 2))
    assert torch.equal(B.diagonal(dim1=1, dim2=2), torch.zeros(16, 32))
    assert B.min() >= 0
    assert B.max() < 1


def test_relation_formula():
    model = ART(ArtConfig(bases=2, roles=4))
    Z = model.atlas.logits.detach().double()
    B = model.atlas.relations()
    for k in range(2):
        for a in range(4):
            for b in range(4):
                exact = 0 if a == b else 1 / (1 + torch.exp(-(Z[k, a, b] + Z[k, b, a]) / 2))
                assert B[k, a, b].item() == pytest.approx(float(exact), abs=1e-6)


def test_relations_with_a_diagonal():
    hollow, full = (
        ART(ArtConfig(bases=2, roles=4, diagonal=d)).atlas.relations() for d in (False, True)
    )
    off = ~torch.eye(4, dtype=torch.bool)
    assert torch.equal(hollow[:, off], full[:, off])
    assert full.diagonal(dim1=1, dim2=2).min() > 0


def test_initial_logits_are_standard_normal():
    Z = ART(ArtConfig(bases=64)).atlas.logits
    assert abs(Z.mean()) < 0.02
    assert abs(Z.std() - 1) < 0.02


@pytest.mark.parametrize(
    ("mode", "trained", "distinct"), [("learned", 1, 4), ("frozen", 0, 4), ("tied", 1, 1)]
)
def test_atlas_modes(mode, trained, distinct):
    model = ART(ArtConfig(bases=4, roles=8, atlas=mode))
    names = [n for n, _ in model.named_parameters() if n.startswith("atlas")]
    assert len(names) == trained
    assert "atlas.logits" in model.state_dict()
    B = model.atlas.relations()
    assert B.shape == (4, 8, 8)
    assert len({tuple(b.flatten().tolist()) for b in B}) == distinct


def test_number_of_parameters_is_the_published_one():
    assert sum(p.numel() for p in ART().parameters()) == 52_034
