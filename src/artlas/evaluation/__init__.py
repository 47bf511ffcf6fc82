"""Few-shot evaluation of frozen representations."""

from artlas.evaluation.accuracy import Accuracy as Accuracy
from artlas.evaluation.accuracy import evaluate as evaluate
from artlas.evaluation.accuracy import nearest as nearest
from artlas.evaluation.accuracy import verdict as verdict
from artlas.evaluation.episodes import Episode as Episode
from artlas.evaluation.episodes import draw_episodes as draw_episodes
from artlas.evaluation.episodes import hash_episodes as hash_episodes
from artlas.learning.heads import Linear as Linear
from artlas.learning.heads import Prototypes as Prototypes
from artlas.learning.heads import SupportScaler as SupportScaler
