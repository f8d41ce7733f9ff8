--- Applies workspace edits, and says honestly what became of them.
---
--- Neovim's own handler answers "applied" for edits that it skipped because the
--- buffer had moved on, checks the version of the first document only, and makes
--- an edit that arrives while the user is in insert mode part of the user's own
--- undo block, where undoing it can lose lines. This one checks everything before
--- it touches anything, makes each edit one undo block of its own, and keeps
--- cursors, views and marks on the text where they were.
local api = vim.api
local places_of = require('thinkflow.places')
local position = require('thinkflow.position')
local resource = require('thinkflow.resource')

local M = {}

--- @class thinkflow.Edit Rows and byte columns from 0, the end exclusive.
--- @field row integer
--- @field col integer
--- @field end_row integer
--- @field end_col integer
--- @field text string[]

--- A refusal is an error value that is a table; everything else is a mistake of ours.
local function refuse(format, ...)
  error({ refusal = format:format(...) }, 0)
end

local function name_of(bufnr)
  return vim.fn.fnamemodify(api.nvim_buf_get_name(bufnr), ':~:.')
end

local function before(row, col, row2, col2)
  return row < row2 or (row == row2 and col < col2)
end

--- The lines of newText as this buffer holds them. A carriage return belongs to
--- the line ending only where 'fileformat' says so; elsewhere it is text.
local function split_lines(text, fileformat)
  if fileformat == 'dos' then
    text = text:gsub('\r\n', '\n')
  elseif fileformat == 'mac' then
    text = text:gsub('\r\n?', '\n')
  end
  return vim.split(text, '\n', { plain = true })
end

--- Converts one TextEdit. With 'endofline' the document has one more, empty line
--- than the buffer, and an edit may reach into it.
--- @return thinkflow.Edit
local function convert(bufnr, edit, encoding, lines)
  local from, to = edit.range.start, edit.range['end']
  local last = vim.bo[bufnr].endofline and #lines or #lines - 1
  if from.line > last or to.line > last then
    refuse(
      'line %d is past the end of %s, which has %d',
      math.max(from.line, to.line) + 1,
      name_of(bufnr),
      #lines
    )
  end
  local function column(pos)
    return pos.line < #lines and position.byte(lines[pos.line + 1], pos.character, encoding) or 0
  end
  local e = {
    row = from.line,
    col = column(from),
    end_row = to.line,
    end_col = column(to),
    text = split_lines(edit.newText, vim.bo[bufnr].fileformat),
  }
  if before(e.end_row, e.end_col, e.row, e.col) then
    refuse('an edit of %s ends before it starts', name_of(bufnr))
  end
  return e
end

local function is_empty(e)
  return e.row == e.end_row and e.col == e.end_col
end

--- First edit first. At one place insertions come in the order in which they were
--- given, and before a replacement that starts there.
local function by_place(a, b)
  if a.row ~= b.row then
    return a.row < b.row
  end
  if a.col ~= b.col then
    return a.col < b.col
  end
  if is_empty(a) ~= is_empty(b) then
    return is_empty(a)
  end
  return a.index < b.index
end

--- The buffer's last line break is implied: makes of what reaches past it one
--- edit that ends where the buffer's text ends.
local function cut_back(edits, lines)
  local e = edits[#edits]
  if not e or e.end_row < #lines then
    return
  end
  while #edits > 1 do
    local previous = edits[#edits - 1]
    if previous.end_row ~= e.row or previous.end_col ~= e.col then
      break
    end
    local text = vim.list_slice(previous.text)
    text[#text] = text[#text] .. e.text[1]
    vim.list_extend(text, e.text, 2)
    e = { row = previous.row, col = previous.col, end_row = e.end_row, end_col = e.end_col, text = text }
    edits[#edits] = nil
    edits[#edits] = e
  end
  local text = e.text
  local nothing = #text == 1 and text[1] == ''
  if #text > 1 and text[#text] == '' then
    table.remove(text)
  end
  e.end_row, e.end_col = #lines - 1, #lines[#lines]
  if e.row == #lines then
    e.row, e.col = e.end_row, e.end_col
    if not nothing then
      table.insert(text, 1, '')
    end
  elseif nothing and e.col == 0 and e.row > 0 then
    -- Whole lines up to the end go: with them the line break before them.
    e.row, e.col = e.row - 1, #lines[e.row]
  end
end

--- Converts, sorts and checks the edits of one document.
--- @return thinkflow.Edit[] last edit first
local function convert_all(bufnr, edits, encoding)
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local converted = {}
  for i, edit in ipairs(edits) do
    converted[i] = convert(bufnr, edit, encoding, lines)
    converted[i].index = i
  end
  table.sort(converted, by_place)
  for i = 2, #converted do
    local upper, lower = converted[i - 1], converted[i]
    if before(lower.row, lower.col, upper.end_row, upper.end_col) then
      refuse('edits of %s overlap', name_of(bufnr))
    end
  end
  cut_back(converted, lines)
  local reversed = {}
  for i = #converted, 1, -1 do
    reversed[#reversed + 1] = converted[i]
  end
  return reversed
end

--- Ends the current undo block. Setting 'undolevels' does, to any value; it is
--- the one way that also works while the user is typing.
local function break_undo(bufnr)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
end

--- In a buffer without 'endofline', text that now ends with a line break has an
--- empty last line; saving must not end that line as well.
local function keep_last_line_break(bufnr, last_before)
  local last = api.nvim_buf_get_lines(bufnr, -2, -1, false)[1]
  if not vim.bo[bufnr].endofline and last == '' and last_before ~= '' then
    vim.bo[bufnr].fixendofline = false
  end
end

--- @param edits thinkflow.Edit[] last edit first
local function change_buffer(bufnr, edits)
  local places = places_of.remember(bufnr, edits)
  local whole = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  break_undo(bufnr)
  local ok, err = pcall(function()
    for _, e in ipairs(edits) do
      api.nvim_buf_set_text(bufnr, e.row, e.col, e.end_row, e.end_col, e.text)
    end
  end)
  if not ok then
    pcall(api.nvim_buf_set_lines, bufnr, 0, -1, false, whole)
  end
  break_undo(bufnr)
  keep_last_line_break(bufnr, whole[#whole])
  places.restore()
  if not ok then
    refuse('%s could not be changed: %s', name_of(bufnr), tostring(err))
  end
end

--- Loads the buffer of a document that is not open; never over another editor's
--- swap file.
local function load_buffer(bufnr)
  if api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local swap = api.nvim_create_autocmd('SwapExists', {
    callback = function()
      vim.v.swapchoice = 'q'
    end,
  })
  local ok, err = pcall(vim.fn.bufload, bufnr)
  pcall(api.nvim_del_autocmd, swap)
  if not ok or not api.nvim_buf_is_loaded(bufnr) then
    refuse('%s could not be opened: %s', name_of(bufnr), tostring(err))
  end
  vim.bo[bufnr].buflisted = true
end

local function check_writable(bufnr)
  if not vim.bo[bufnr].modifiable then
    refuse("%s is not modifiable (see :help 'modifiable')", name_of(bufnr))
  end
  if vim.bo[bufnr].readonly then
    refuse('%s is read-only (:set noreadonly allows changes)', name_of(bufnr))
  end
end

--- The steps of a WorkspaceEdit in order, whichever of its two forms it has.
local function steps_of(edit)
  local steps = {}
  if edit.documentChanges then
    for i, change in ipairs(edit.documentChanges) do
      if change.kind and not resource[change.kind] then
        refuse('unsupported change %q', change.kind)
      end
      steps[i] = change
    end
    return steps
  end
  for uri, edits in pairs(edit.changes or {}) do
    steps[#steps + 1] = { textDocument = { uri = uri }, edits = edits }
  end
  return steps
end

--- The edits of one document as they are for its current text.
--- @param documents thinkflow.Documents
local function current_edits(step, bufnr, documents)
  local uri, version = step.textDocument.uri, step.textDocument.version
  if type(version) ~= 'number' then
    return step.edits
  end
  local now = documents.version(uri, bufnr)
  -- Neovim 0.10 opens documents with version 0, and the next one is above 1; the
  -- server says 1 for that 0, because Neovim's own handler never checks a 0.
  if now and version == 1 and now ~= 1 then
    version = 0
  end
  if now == version then
    return step.edits
  end
  local edits = now and now > version and documents.rebase(uri, version, step.edits)
  if not edits then
    refuse(
      'stale: %s is at version %s, the edit is for %d',
      name_of(bufnr),
      tostring(now or 'none (not open)'),
      step.textDocument.version
    )
  end
  return edits
end

--- @class thinkflow.Documents What the server knows of documents.
--- @field version fun(uri: string, bufnr: integer): integer? the version it has last been told
--- @field rebase fun(uri: string, version: integer, edits: table[]): table[]? edits for an older version, for the current one

--- Applies a WorkspaceEdit. Nothing is touched before everything has been checked.
--- @param edit table WorkspaceEdit
--- @param encoding string offset encoding of the client
--- @param documents thinkflow.Documents
--- @return table ApplyWorkspaceEditResult
function M.apply(edit, encoding, documents)
  local at
  local ok, err = pcall(function()
    local steps = steps_of(edit)
    local edits = {}
    for i, step in ipairs(steps) do
      at = i
      if not step.kind then
        local bufnr = vim.uri_to_bufnr(step.textDocument.uri)
        edits[i] = current_edits(step, bufnr, documents)
        if api.nvim_buf_is_loaded(bufnr) then
          check_writable(bufnr)
          convert_all(bufnr, edits[i], encoding)
        end
      end
    end
    for i, step in ipairs(steps) do
      at = i
      if step.kind then
        resource[step.kind](step)
      elseif next(edits[i]) then
        local bufnr = vim.uri_to_bufnr(step.textDocument.uri)
        load_buffer(bufnr)
        check_writable(bufnr)
        change_buffer(bufnr, convert_all(bufnr, edits[i], encoding))
      end
    end
  end)
  if ok then
    return { applied = true }
  end
  return {
    applied = false,
    failureReason = type(err) == 'table' and err.refusal or tostring(err),
    failedChange = at and at - 1 or nil,
  }
end

return M
