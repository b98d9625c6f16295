"""A real editor: Neovim without a screen, set up as its page says, shows and applies advice."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from real_editor import REWRITTEN, TEXT, said_by, setup

NVIM = shutil.which("nvim")

# What a user does by hand: wait for the diagnostic, put the cursor there, take the first action,
# and save. Everything goes through the editor's own functions.
SCRIPT = """\
local said = { found = {} }
local function finish()
  pcall(function() vim.fn.writefile({ vim.fn.json_encode(said) }, vim.env.ADVISE_TEST_REPORT) end)
  vim.cmd("qall!")
end
local ok, problem = pcall(function()
  vim.cmd("edit " .. vim.env.ADVISE_TEST_FILE)
  said.waited = vim.wait(40000, function() return #vim.diagnostic.get(0) > 0 end, 50)
  for _, found in ipairs(vim.diagnostic.get(0)) do
    table.insert(said.found, {
      code = found.code, message = found.message, line = found.lnum, column = found.col,
      end_column = found.end_col, severity = found.severity,
    })
  end
  local first = vim.diagnostic.get(0)[1]
  vim.api.nvim_win_set_cursor(0, { first.lnum + 1, first.col })
  local params = vim.lsp.util.make_position_params()
  for _, reply in pairs(vim.lsp.buf_request_sync(0, "textDocument/hover", params, 20000)) do
    said.hover = reply.result.contents.value
  end
  vim.ui.select = function(items, options, choose)
    said.titles = vim.tbl_map(function(item) return item[2].title end, items)
    choose(items[1], 1)
  end
  local before = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\\n")
  vim.lsp.buf.code_action()
  said.applied = vim.wait(40000, function()
    return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\\n") ~= before
  end, 50)
  said.cleared = vim.wait(40000, function() return #vim.diagnostic.get(0) == 0 end, 50)
  said.lines = vim.api.nvim_buf_get_lines(0, 0, -1, true)
  vim.cmd("write")
end)
if not ok then said.problem = problem end
finish()
"""


def configuration() -> str:
    """The part of the page for the Neovim that is installed."""
    assert NVIM is not None
    shown = subprocess.run([NVIM, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"NVIM v(\d+)\.(\d+)", shown)
    assert found is not None
    old = (int(found[1]), int(found[2])) < (0, 8)
    return setup("Neovim", "init-0.7.lua" if old else "init.lua")


@pytest.mark.skipif(NVIM is None, reason="Neovim is not installed: apt-get install neovim")
def test_neovim_shows_the_finding_and_applies_the_rewrite(tmp_path: Path) -> None:
    assert NVIM is not None
    options = '{ machine = "sp2", minSpeedup = 1.01, sizes = { N = 4096 } }'
    text = re.sub(r"init_options = .*,\n", f"init_options = {options},\n", configuration())
    assert "minSpeedup" in text
    (tmp_path / "init.lua").write_text(text, encoding="utf-8")
    (tmp_path / "script.lua").write_text(SCRIPT, encoding="utf-8")
    command = [NVIM, "--headless", "-n", "-u", str(tmp_path / "init.lua"), "-S", "script.lua"]
    said = said_by(command, tmp_path)
    assert said["waited"] and said["applied"] and said["cleared"], said
    found = said["found"]
    assert found["code"] == "ADV101"
    line = TEXT.splitlines()[12]
    assert found["line"] == 12
    # Neovim turns the columns of the protocol into bytes
    assert found["column"] == len(line[: line.index("Dist(")].encode())
    assert said["titles"][0] == found["message"]
    assert said["titles"][1].startswith("Ignore ADV101")
    assert "\n".join(said["lines"]) + "\n" == REWRITTEN
