"""The paper: graphs to couplings, energies and representations."""
