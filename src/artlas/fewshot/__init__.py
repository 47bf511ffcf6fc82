"""Few-shot evaluation of frozen representations."""

from artlas.fewshot.episodes import Episode as Episode
from artlas.fewshot.episodes import draw_episodes as draw_episodes
from artlas.fewshot.episodes import hash_episodes as hash_episodes
from artlas.fewshot.evaluate import Accuracy as Accuracy
from artlas.fewshot.evaluate import evaluate as evaluate
from artlas.fewshot.evaluate import nearest as nearest
from artlas.fewshot.evaluate import verdict as verdict
from artlas.fewshot.heads import Linear as Linear
from artlas.fewshot.heads import Prototypes as Prototypes
from artlas.fewshot.heads import SupportScaler as SupportScaler
