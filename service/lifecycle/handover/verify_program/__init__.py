"""The verifier that is in every export: parts here, one file there (see ``service.lifecycle.handover.verifier``)."""
