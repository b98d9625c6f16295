"""The language server: predictions in an editor. Needs the extra ``kernel-advisor[lsp]``.

`advisor.lsp.server`, `advisor.lsp.protocol` and `advisor.lsp.protocol` speak the protocol;
everything else in this package knows only texts, findings and positions.
"""
