"""Read untrusted files safely, and write our own files whole or not at all."""
