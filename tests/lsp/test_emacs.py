"""A real editor: Emacs without a screen, set up as its page says, shows and applies advice."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from real_editor import said_by, setup

EMACS = shutil.which("emacs")

# What a user does by hand: open the file, wait for the finding, go there, ask for it, take the
# first action, save. Each step is taken from a timer once what it waits for is there, so that
# Emacs does all else in its own time. Everything goes through the editor's own functions.
SCRIPT = """\
(defvar said nil)
(defun say (key value) (push (cons key value) said))
(defun take-first (_prompt collection &rest _)
  (let ((titles (mapcar #'car collection)))
    (say 'titles (vconcat titles))
    (car titles)))
(setq make-backup-files nil lsp-auto-guess-root t
      lsp-diagnostics-provider :flymake)
(defun findings () (and (fboundp 'flymake-diagnostics) (flymake-diagnostics)))
(defun shown (finding)
  `((message . ,(flymake-diagnostic-text finding))
    (covers . ,(buffer-substring-no-properties (flymake-diagnostic-beg finding)
                                               (flymake-diagnostic-end finding)))))
(defun ask-and-act ()
  (say 'found (vconcat (mapcar #'shown (findings))))
  (goto-char (flymake-diagnostic-beg (car (findings))))
  (if (featurep 'lsp-mode)
      (progn
        (say 'hover (gethash "value" (gethash "contents" (lsp-request
          "textDocument/hover" (lsp--text-document-position-params)))))
        (lsp-execute-code-action (car (append (lsp-code-actions-at-point) nil))))
    (say 'hover (plist-get (plist-get (jsonrpc-request
      (eglot-current-server) :textDocument/hover (eglot--TextDocumentPositionParams))
      :contents) :value))
    (cl-letf (((symbol-function 'completing-read) #'take-first)
              (last-nonmenu-event ?x))  ; no mouse, no menu
      (call-interactively #'eglot-code-actions))))
(defun finish ()
  (with-temp-file (getenv "ADVISE_TEST_REPORT") (insert (json-encode said)))
  (kill-emacs 0))
(defvar steps
  (list (cons #'findings #'ask-and-act)
        (cons #'buffer-modified-p #'ignore)
        (cons (lambda () (not (findings))) #'save-buffer)))
(defvar end (+ (float-time) 60))
(defun advance ()
  (condition-case problem
      (with-current-buffer (get-file-buffer (getenv "ADVISE_TEST_FILE"))
        (cond ((null steps) (finish))
              ((> (float-time) end)
               (say 'log (with-current-buffer "*Messages*" (buffer-string)))
               (error "step %d from the end waits in vain" (length steps)))
              ((funcall (caar steps)) (funcall (cdr (pop steps))))))
    (error (say 'problem (format "%S" problem)) (finish))))
(find-file (getenv "ADVISE_TEST_FILE"))
(run-hooks 'post-command-hook)
(run-with-timer 0.1 0.1 #'advance)
"""


def has(library: str) -> bool:
    """Whether the Emacs here finds a library; Debian's packages stand outside Emacs' own."""
    if EMACS is None:
        return False
    asks = f"(kill-emacs (if (locate-library {json.dumps(library)}) 0 1))"
    return subprocess.run([EMACS, "--batch", "-q", "--eval", asks], check=False).returncode == 0


@pytest.mark.skipif(EMACS is None, reason="Emacs is not installed: apt-get install emacs-nox")
@pytest.mark.parametrize("library", ["eglot", "lsp-mode"])
def test_emacs_shows_the_finding_and_applies_the_rewrite(library: str, tmp_path: Path) -> None:
    assert EMACS is not None
    if not has(library):
        pytest.skip(f"Emacs has no {library}: apt-get install elpa-{library}")
    (tmp_path / ".git").mkdir()
    given = '(:machine "t3e" :sizes (:N 4096))'
    chosen = '(:machine "sp2" :minSpeedup 1.01 :sizes (:N 4096))'
    text = setup("Emacs", f"{library}.el")
    assert given in text
    (tmp_path / ".emacs.d").mkdir()
    # it would compile all that it loads for a home that nobody comes back to
    (tmp_path / ".emacs.d" / "early-init.el").write_text(
        "(setq native-comp-deferred-compilation nil native-comp-jit-compilation nil)"
    )
    (tmp_path / ".emacs.d" / "init.el").write_text(text.replace(given, chosen))
    (tmp_path / "script.el").write_text(SCRIPT, encoding="utf-8")
    command = [EMACS, f"--fg-daemon={tmp_path / 'socket'}", "-l", "script.el"]
    said = said_by(command, tmp_path, TERM="dumb")
    found = said["found"]
    assert found["covers"] == 'Dist("N", "N", None, Block("rank"), on=ranks)'
    if library == "eglot":
        assert "ADV101" in found["message"]
        assert said["titles"][0] in found["message"]
        assert said["titles"][1].startswith("Ignore ADV101")
