-- Edits made for an older text are moved along the changes that Neovim reports
-- while a user changes other lines: wherever that succeeds, the edited lines are
-- what they would be if the edit had come first. It succeeds for every change of
-- lines that the edit does not touch.
local T = dofile(vim.env.HARNESS)
local edit = require('thinkflow.edit')
local history = require('thinkflow.history')

math.randomseed(tonumber(vim.env.SEED))

local uri = 'file:///document'
local sync = require('vim.lsp.sync')

--- Applies a change to lines and returns what Neovim would report of it.
local function report(before, after, first, last, new_last)
  return sync.compute_diff(before, after, first, last, new_last, 'utf-16', '\n')
end

local function one_case(number)
  local lines = {}
  for i = 1, 12 do
    lines[i] = ('line %d 😀 of it'):format(i)
  end
  local h = history.new()
  h:sent('textDocument/didOpen', { textDocument = { uri = uri, version = 0 } })
  -- The server's edit replaces the middle of line `at` (from 1).
  local at = math.random(4, 9)
  local edits = {
    {
      range = { start = { line = at - 1, character = 5 }, ['end'] = { line = at - 1, character = 9 } },
      newText = 'NEW',
    },
  }
  -- The user changes lines above and below, again and again.
  local current, version, touched = vim.deepcopy(lines), 1, false
  for _ = 1, math.random(1, 5) do
    local target
    for i, line in ipairs(current) do
      if line == lines[at] then
        target = i
      end
    end
    local after = vim.deepcopy(current)
    local above = target > 1 and (target == #current or math.random(2) == 1)
    local first = above and math.random(1, target - 1) or math.random(target + 1, #current)
    local kind = math.random(3)
    local change
    if kind == 1 then -- typing in a line
      after[first] = after[first]:sub(1, 3) .. 'é' .. after[first]:sub(4)
      change = report(current, after, first - 1, first, first)
    elseif kind == 2 then -- a new line
      table.insert(after, first, 'inserted')
      change = report(current, after, first - 1, first - 1, first)
    elseif #current > 8 then -- a line goes
      table.remove(after, first)
      change = report(current, after, first - 1, first, first - 1)
    end
    if change then
      version = version + math.random(1, 4)
      h:sent('textDocument/didChange', {
        textDocument = { uri = uri, version = version },
        contentChanges = { change },
      })
      current, touched = after, true
    end
  end
  T.eq(h:version(uri), touched and version or 0, 'version')
  local moved = h:rebase(uri, 0, edits)
  if not moved then
    return false
  end
  local buf = vim.api.nvim_create_buf(true, false)
  vim.api.nvim_buf_set_name(buf, vim.fn.tempname())
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, current)
  local result = edit.apply({
    documentChanges = { { textDocument = { uri = vim.uri_from_bufnr(buf) }, edits = moved } },
  }, 'utf-16', {})
  T.eq(result, { applied = true }, 'case ' .. number)
  local want = vim.deepcopy(current)
  for i, line in ipairs(want) do
    if line == lines[at] then
      -- Characters 5 to 9 in UTF-16 are "N 😀" with its two units and a blank.
      local head, rest = lines[at]:sub(1, 5), lines[at]:sub(5 + #vim.fn.strcharpart(lines[at]:sub(6), 0, 3) + 1)
      want[i] = head .. 'NEW' .. rest
    end
  end
  T.eq(vim.api.nvim_buf_get_lines(buf, 0, -1, false), want, 'case ' .. number)
  vim.api.nvim_buf_delete(buf, { force = true })
  return true
end

T.run(function()
  local moved, cases = 0, tonumber(vim.env.CASES)
  for number = 1, cases do
    if one_case(number) then
      moved = moved + 1
    end
  end
  -- Neovim reports a line that goes just above, or comes just below, in a way
  -- that touches the line itself: those are stale, and rare.
  T.number('moved along', ('%d of %d'):format(moved, cases))
  T.eq(moved > cases * 0.7, true, 'most are moved along: ' .. moved)

  local h = history.new()
  h:sent('textDocument/didOpen', { textDocument = { uri = uri, version = 0 } })
  h:sent('textDocument/didChange', {
    textDocument = { uri = uri, version = 3 },
    contentChanges = {
      { range = { start = { line = 2, character = 4 }, ['end'] = { line = 2, character = 4 } }, text = 'x' },
    },
  })
  local function at(line, character, end_line, end_character)
    return {
      {
        range = { start = { line = line, character = character }, ['end'] = { line = end_line, character = end_character } },
        newText = '',
      },
    }
  end
  T.eq(h:rebase(uri, 0, at(2, 0, 2, 1)), nil, 'the same line is stale')
  T.eq(h:rebase(uri, 0, at(1, 0, 3, 0)), nil, 'around the line is stale')
  T.eq(h:rebase(uri, 0, at(2, 0, 2, 0)), at(2, 0, 2, 0), 'whole lines before it are not')
  T.eq(h:rebase(uri, 0, at(0, 3, 2, 0)), at(0, 3, 2, 0), 'up to it neither')
  T.eq(h:rebase(uri, 2, at(0, 0, 0, 1)), nil, 'an unknown version is stale')
  T.eq(h:rebase('file:///other', 0, at(0, 0, 0, 1)), nil, 'an unknown document is stale')
end)
