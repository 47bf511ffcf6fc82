"""Evaluate frozen representations on few-shot episodes."""

from artlas.evaluation.accuracy import Accuracy as Accuracy
from artlas.evaluation.accuracy import compare_with_controls as compare_with_controls
from artlas.evaluation.accuracy import evaluate as evaluate
from artlas.evaluation.accuracy import nearest_rows as nearest_rows
from artlas.evaluation.episodes import Episode as Episode
from artlas.evaluation.episodes import draw_episodes as draw_episodes
from artlas.evaluation.episodes import hash_episodes as hash_episodes
