--- What the server has been told of each document: its version, and the latest
--- changes. An edit that was made for a version of a moment ago can then be moved
--- along, when the user has typed in other lines since: somebody who types all the
--- time would otherwise make every edit stale.
local M = {}

--- How many notifications are kept of each document.
local most = 200

--- @class thinkflow.History
--- @field documents table<string, { version: integer, base: integer, steps: { version: integer, changes: table[] }[] }>
local History = {}
History.__index = History

--- @return thinkflow.History
function M.new()
  return setmetatable({ documents = {} }, History)
end

--- Takes note of a notification that is being sent.
function History:sent(method, params)
  if method == 'textDocument/didOpen' then
    local document = params.textDocument
    self.documents[document.uri] = { version = document.version, base = document.version, steps = {} }
  elseif method == 'textDocument/didClose' then
    self.documents[params.textDocument.uri] = nil
  elseif method == 'textDocument/didChange' then
    local uri, version = params.textDocument.uri, params.textDocument.version
    local document = self.documents[uri]
    if not document then
      -- Opened before we came to know of it.
      self.documents[uri] = { version = version, base = version, steps = {} }
      return
    end
    table.insert(document.steps, { version = version, changes = params.contentChanges })
    document.version = version
    if #document.steps > most then
      document.base = table.remove(document.steps, 1).version
    end
  end
end

--- @return integer? version that the server has been told
function History:version(uri)
  local document = self.documents[uri]
  return document and document.version
end

--- The changes after a version, or nil when they are not known.
local function since(document, version)
  if version == document.base then
    return document.steps
  end
  for i, step in ipairs(document.steps) do
    if step.version == version then
      return vim.list_slice(document.steps, i + 1)
    end
  end
end

--- Moves a range along one change; nil when both are in the same lines.
local function move(range, change)
  if not change.range then
    return nil
  end
  local from, to = change.range.start, change.range['end']
  local first, last = range.start, range['end']
  -- The change ends with a line break: it is in none of the line where it ends.
  local whole = to.character == 0
    and (change.text:sub(-1) == '\n' or (change.text == '' and from.character == 0))
  if to.line < first.line or (whole and to.line == first.line) then
    local _, breaks = change.text:gsub('\n', '')
    local by = breaks - (to.line - from.line)
    return {
      start = { line = first.line + by, character = first.character },
      ['end'] = { line = last.line + by, character = last.character },
    }
  end
  if from.line > last.line or (last.character == 0 and from.line == last.line) then
    return range
  end
  return nil
end

--- Edits made for a version, as they are for the current one; nil when what
--- happened since is unknown or happened in the same lines.
--- @param uri string
--- @param version integer
--- @param edits table[] TextEdits
--- @return table[]?
function History:rebase(uri, version, edits)
  local document = self.documents[uri]
  local steps = document and since(document, version)
  if not steps then
    return nil
  end
  local moved = {}
  for i, edit in ipairs(edits) do
    local range = edit.range
    for _, step in ipairs(steps) do
      for _, change in ipairs(step.changes) do
        range = range and move(range, change)
      end
    end
    if not range then
      return nil
    end
    moved[i] = vim.tbl_extend('force', edit, { range = range })
  end
  return moved
end

return M
