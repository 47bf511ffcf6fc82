"""The paper's method: graphs to couplings, energies and vectors."""
