"""Tables and figures of few-shot transfer, made from its records.

``all_methods`` makes the paper's two main tables, ``variants`` those of SCGFM-ART and its controls.
"""
