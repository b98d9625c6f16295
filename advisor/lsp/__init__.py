"""The language server: predictions in an editor. Needs the extra ``kernel-advisor[lsp]``.

`advisor.lsp.server` and `advisor.lsp.protocol` speak the protocol; everything else in this package
knows only texts, findings and the editor's positions.
"""
