"""The experiment of the SCGFM-ART paper: protocol, baselines, studies and tables."""
