--- How commands, tools and results read, each in one line of highlighted chunks.
local M = {}

local glyphs = {
  applied = { '✓', 'ThinkFlowApplied' },
  staged = { '✓', 'ThinkFlowPending' },
  failed = { '✗', 'ThinkFlowFailed' },
  rejected = { '✗', 'ThinkFlowFailed' },
  not_applied = { '✗', 'ThinkFlowFailed' },
  uncertain = { '?', 'ThinkFlowFailed' },
  rolled_back = { '↶', 'ThinkFlowFailed' },
  undone = { '↶', 'ThinkFlowSkipped' },
  skipped = { '–', 'ThinkFlowSkipped' },
  cancelled = { '–', 'ThinkFlowSkipped' },
}

local function plural(n, word)
  return ('%d %s%s'):format(n, word, n == 1 and '' or 's')
end

--- How a run went.
--- @return string
function M.summary(result)
  local parts = { result.state }
  if (result.applied or 0) > 0 then
    parts[#parts + 1] = plural(result.applied, 'command')
  end
  if result.files and #result.files > 0 then
    parts[#parts + 1] = plural(#result.files, 'file')
  end
  if (result.failed or 0) > 0 then
    parts[#parts + 1] = result.failed .. ' failed'
  end
  if (result.skipped or 0) > 0 then
    parts[#parts + 1] = result.skipped .. ' skipped'
  end
  local usage = result.usage
  if usage and (usage.requests or 0) > 0 then
    parts[#parts + 1] = plural(usage.requests, 'request')
    parts[#parts + 1] = ('%s%d → %d tokens'):format(
      usage.estimated and '≈' or '',
      usage.input_tokens or 0,
      usage.output_tokens or 0
    )
  end
  return table.concat(parts, ' · ')
end

--- @param command table of a command.* event
--- @param reason? string
--- @return thinkflow.Chunk[]
function M.command(command, reason)
  local glyph = glyphs[command.status or ''] or { '…', 'ThinkFlowPending' }
  local chunks = {
    glyph,
    { ' ' .. command.name:gsub('^tf%-', '') .. ' ' },
    { command.path or command.cmd or '' },
  }
  if command.dest then
    chunks[#chunks + 1] = { ' → ' .. command.dest }
  end
  if (command.added or 0) > 0 or (command.removed or 0) > 0 then
    chunks[#chunks + 1] = { '  +' .. (command.added or 0), 'ThinkFlowAdded' }
    chunks[#chunks + 1] = { ' −' .. (command.removed or 0), 'ThinkFlowRemoved' }
  end
  if command.exit_code then
    chunks[#chunks + 1] = { '  exit ' .. command.exit_code }
  end
  local why = reason or command.error
  if why and why ~= '' and command.status ~= 'applied' then
    -- What follows the first clause is advice for the model.
    local clause = vim.split(why:match('^[^\n]*'), '; ', { plain = true })[1]
    chunks[#chunks + 1] = { '  ' .. clause, 'ThinkFlowNote' }
  end
  for _, note in ipairs(command.notes or {}) do
    chunks[#chunks + 1] = { '  (' .. note .. ')', 'ThinkFlowNote' }
  end
  return chunks
end

--- @param tool table of a tool.* event
--- @return thinkflow.Chunk[]
function M.tool(tool)
  local glyph = tool.status == 'ok' and glyphs.applied or tool.status and glyphs.failed or { '…', 'ThinkFlowPending' }
  local what = tool.summary or tool.arguments or ''
  if #what > 100 then
    what = what:sub(1, 100) .. '…'
  end
  local chunks = { glyph, { ' ' .. tool.name .. ' ' }, { what, 'ThinkFlowNote' } }
  if tool.error then
    chunks[#chunks + 1] = { '  ' .. tool.error, 'ThinkFlowFailed' }
  end
  return chunks
end

--- @param items table[] of a plan event
--- @return thinkflow.Chunk[]
function M.plan(items)
  local done, current = 0, nil
  for _, item in ipairs(items) do
    if item.status == 'done' then
      done = done + 1
    elseif item.status == 'in_progress' then
      current = current or item.title
    end
  end
  return {
    { ('☰ plan %d/%d'):format(done, #items), 'ThinkFlowPending' },
    { current and (' ' .. current) or '' },
  }
end

return M
