--- Tasks: from the command to the end of the answer.
local api = vim.api
local answer = require('thinkflow.answer')
local approval = require('thinkflow.approval')
local client_of = require('thinkflow.client')
local config = require('thinkflow.config')
local lines = require('thinkflow.lines')
local position = require('thinkflow.position')

local M = {}

--- @class thinkflow.Session A conversation with its answer buffer.
--- @field id? string the server's id, known after the first task
--- @field answer thinkflow.Answer
--- @field root string
--- @field run? thinkflow.Run the one that is going on

--- @class thinkflow.Run
--- @field id string
--- @field client integer
--- @field session thinkflow.Session
--- @field doing string what is happening now
--- @field applied integer commands
--- @field failed integer
--- @field done boolean
--- @field foreign? boolean something else than this plugin's command started it
--- @field on_done? fun(result: table)

--- @type table<string, thinkflow.Run> runs that are going on
local runs = {}

--- @type table<string, thinkflow.Session> current session by workspace folder
local sessions = {}

local session_count = 0

--- Lets a statusline show the change, and others listen for it.
local function changed()
  api.nvim_exec_autocmds('User', { pattern = 'ThinkFlowStatus', modeline = false })
  vim.cmd.redrawstatus({ bang = true, mods = { emsg_silent = true } })
end

local function new_session(root)
  session_count = session_count + 1
  local title = session_count == 1 and 'ThinkFlow' or ('ThinkFlow ' .. session_count)
  local session = { root = root, answer = answer.new(title) }
  session.answer.root = root
  sessions[root] = session
  return session
end

local function session_of(root, fresh)
  local session = sessions[root]
  if fresh or not session or not session.answer:valid() then
    return new_session(root)
  end
  return session
end

local function new_run_id()
  return ('nvim-%s'):format(vim.uv.random(8):gsub('.', function(c)
    return ('%02x'):format(c:byte())
  end))
end

local function level_of(state)
  if state == 'done' or state == 'cancelled' then
    return vim.log.levels.INFO
  end
  return state == 'failed' and vim.log.levels.ERROR or vim.log.levels.WARN
end

--- Ends a run once, whichever way its end becomes known first.
local function finish(run, result)
  if run.done then
    return
  end
  run.done = true
  runs[run.id] = nil
  local session = run.session
  if session.run == run then
    session.run = nil
  end
  if result.session and result.session ~= '' then
    session.id = result.session
  end
  local view = session.answer
  if view:valid() then
    if result.reason and result.reason ~= '' then
      view:line({ { result.reason, result.state ~= 'cancelled' and 'ThinkFlowFailed' or 'ThinkFlowNote' } })
    end
    view:line({ { '— ' .. lines.summary(result), 'ThinkFlowNote' } })
  end
  if result.state ~= 'done' and result.state ~= 'cancelled' then
    local reason = result.reason and result.reason ~= '' and result.reason or 'no reason given'
    client_of.notify(('the task %s: %s'):format(
      result.state == 'failed' and 'failed' or 'was ' .. result.state,
      reason
    ), level_of(result.state))
  end
  changed()
  if run.on_done then
    run.on_done(result)
  end
end

local function command_key(run, event)
  return ('%s/%s/%s/%s'):format(run.id, event.turn or 0, event.command.channel or 'text', event.command.id)
end

local on = {}

on['run.started'] = function(run, event)
  run.session.id = event.session or run.session.id
  run.doing = 'waiting for ' .. (event.model or 'the model')
end

on['turn.started'] = function(run)
  run.doing = 'waiting for the model'
end

on['turn.restarted'] = function(run, event)
  run.session.answer:line({ { '↻ asking again: ' .. (event.reason or ''), 'ThinkFlowNote' } })
end

on['text.delta'] = function(run, event)
  run.doing = 'answering'
  run.session.answer:text(event.text or '')
end

on['reasoning.delta'] = function(run, event)
  run.doing = 'thinking'
  run.session.answer:reason(event.text or '')
end

on['thought'] = function(run, event)
  run.session.answer:reason((event.text or '') .. '\n')
end

on['command.started'] = function(run, event)
  local command = event.command
  run.doing = ('%s %s'):format(command.name:gsub('^tf%-', ''), command.path or command.cmd or '')
  run.session.answer:line(lines.command(command), command_key(run, event))
end

local function command_ended(run, event)
  local command = event.command
  if command.status == 'applied' then
    run.applied = run.applied + 1
  elseif command.status == 'failed' then
    run.failed = run.failed + 1
  end
  run.doing = 'answering'
  run.session.answer:line(lines.command(command, event.reason), command_key(run, event))
end

on['command.completed'] = command_ended

on['command.skipped'] = function(run, event)
  event.command.status = event.command.status or 'skipped'
  command_ended(run, event)
end

local function tool_line(run, event)
  run.session.answer:line(lines.tool(event.tool), run.id .. '/tool/' .. event.tool.call_id)
end

on['tool.started'] = function(run, event)
  run.doing = event.tool.name == 'verify' and 'checking the changes' or event.tool.name
  tool_line(run, event)
end

on['tool.completed'] = tool_line

on['plan'] = function(run, event)
  run.session.answer:line(lines.plan(event.plan or {}), run.id .. '/plan')
end

on['approval.requested'] = function(run, event)
  run.doing = 'waiting for your answer'
  approval.ask(run, event.approval)
end

on['run.suspended'] = function(run, event)
  run.session.answer:line({ { 'suspended: ' .. (event.reason or ''), 'ThinkFlowNote' } })
  client_of.notify('the task is suspended: ' .. (event.reason or ''), vim.log.levels.WARN)
end

on['compaction'] = function(run, event)
  run.session.answer:line({ { 'history shortened: ' .. (event.reason or ''), 'ThinkFlowNote' } })
end

for _, kind in ipairs({ 'run.completed', 'run.failed', 'run.cancelled' }) do
  on[kind] = function(run, event)
    -- A run of ours ends with the answer to its request: only then is the server
    -- ready for the next task of the conversation.
    if run.foreign then
      finish(run, event.result or { state = kind:match('%.(.*)'), reason = event.reason })
    end
  end
end

--- A run that something else started, for example a code action.
local function foreign_run(event, client)
  local root = event.dir or client.config.root_dir or assert(vim.uv.cwd())
  local session = session_of(vim.uv.fs_realpath(root) or root, false)
  if session.run then
    session = new_session(session.root)
  end
  local run = {
    id = event.run,
    client = client.id,
    session = session,
    doing = '',
    applied = 0,
    failed = 0,
    done = false,
    foreign = true,
  }
  session.run = run
  runs[run.id] = run
  session.answer:task(event.task or '')
  if config.options.window.open then
    session.answer:open(false)
  end
  return run
end

client_of.on_event = function(event, client)
  local run = runs[event.run]
  if not run then
    if event.type ~= 'run.started' then
      return
    end
    run = foreign_run(event, client)
  end
  local handler = on[event.type]
  if handler then
    handler(run, event)
    changed()
  end
end

client_of.on_exit = function(client_id, code, signal, expected)
  local lost = {}
  for _, run in pairs(runs) do
    if run.client == client_id then
      lost[#lost + 1] = run
    end
  end
  for _, session in pairs(sessions) do
    if not session.run or session.run.client == client_id then
      session.id = nil
    end
  end
  local how = signal ~= 0 and ('signal %d'):format(signal) or ('exit code %d'):format(code)
  local reason = ('the server ended (%s); what was applied stays and is in its ledger. :ThinkFlow starts it again. Log: %s'):format(
    how,
    client_of.log_path()
  )
  for _, run in ipairs(lost) do
    finish(run, { state = expected and 'cancelled' or 'failed', reason = reason, applied = run.applied, failed = run.failed })
  end
  if #lost == 0 and not expected then
    client_of.notify(reason, vim.log.levels.ERROR)
  end
  changed()
end

--- @class thinkflow.Selection
--- @field bufnr integer
--- @field range table rows and byte columns from 0: { row, col, end_row, end_col }, end exclusive

local function lsp_selection(selection, encoding)
  local function point(row, col)
    local line = api.nvim_buf_get_lines(selection.bufnr, row, row + 1, false)[1] or ''
    return { line = row, character = position.character(line, col, encoding) }
  end
  local r = selection.range
  return {
    uri = vim.uri_from_bufnr(selection.bufnr),
    range = { start = point(r[1], r[2]), ['end'] = point(r[3], r[4]) },
  }
end

--- Starts a task.
--- @param opts { task: string, bufnr: integer, selection?: thinkflow.Selection, fresh?: boolean, files?: string[], on_done?: fun(result: table) }
--- @return string? run its id, at once
function M.start(opts)
  local root = client_of.root(opts.bufnr)
  local current = sessions[root]
  if current and current.run and not opts.fresh then
    client_of.notify(
      'a task is going on here: :ThinkFlowSteer adds to it, :ThinkFlowCancel ends it, :ThinkFlow! starts another beside it',
      vim.log.levels.WARN
    )
    return nil
  end
  local session = session_of(root, opts.fresh)
  local run = {
    id = new_run_id(),
    client = -1,
    session = session,
    doing = 'starting',
    applied = 0,
    failed = 0,
    done = false,
    on_done = opts.on_done,
  }
  session.run = run
  runs[run.id] = run
  session.answer:task(opts.task)
  if config.options.window.open then
    session.answer:open(false)
  end
  changed()
  client_of.ensure(root, opts.bufnr, function(client, problem)
    if run.done then
      return
    end
    if not client then
      return finish(run, { state = 'failed', reason = problem })
    end
    run.client = client.id
    client_of.flush(client)
    local files = opts.files
    if not files and not opts.selection and config.options.send_current_file and client_of.is_file(opts.bufnr) then
      files = { vim.uri_from_bufnr(opts.bufnr) }
    end
    local sent = client_of.request(client, 'thinkflow/run', {
      task = opts.task,
      runId = run.id,
      session = session.id,
      selection = opts.selection and lsp_selection(opts.selection, client.offset_encoding) or nil,
      files = files,
    }, function(err, result)
      if err then
        finish(run, { state = 'failed', reason = err.message or vim.inspect(err) })
      else
        finish(run, result)
      end
    end)
    if not sent then
      finish(run, { state = 'failed', reason = 'the server has ended; :ThinkFlow starts it again' })
    end
  end)
  return run.id
end

--- The run that a command without further words means: of this workspace, else any.
--- @return thinkflow.Run?
local function current_run(bufnr)
  local session = sessions[client_of.root(bufnr)]
  if session and session.run then
    return session.run
  end
  return select(2, next(runs))
end

--- Cancels the run of this workspace, or every one.
--- @param all? boolean
function M.cancel(all)
  local wanted = all and vim.tbl_values(runs) or { current_run(api.nvim_get_current_buf()) }
  if #wanted == 0 then
    client_of.notify('nothing to cancel: no task is going on')
    return
  end
  for _, run in ipairs(wanted) do
    local client = vim.lsp.get_client_by_id(run.client)
    if not client then
      finish(run, { state = 'cancelled' })
    else
      run.doing = 'cancelling'
      -- The end comes as the answer to thinkflow/run.
      client_of.request(client, 'thinkflow/cancel', { runId = run.id }, function(err, result)
        if err then
          client_of.notify('not cancelled: ' .. (err.message or '?'), vim.log.levels.ERROR)
        elseif result and result.cancelled == false then
          finish(run, { state = 'cancelled', reason = 'the server did not know of this task any more' })
        end
      end)
    end
  end
  changed()
end

--- Tells the model something more while it works.
function M.steer(text)
  local run = current_run(api.nvim_get_current_buf())
  local client = run and vim.lsp.get_client_by_id(run.client)
  if not run or not client then
    client_of.notify('nothing to steer: no task is going on', vim.log.levels.WARN)
    return
  end
  client_of.request(client, 'thinkflow/steer', { runId = run.id, text = text }, function(err)
    if err then
      client_of.notify('not told: ' .. (err.message or '?'), vim.log.levels.ERROR)
    else
      run.session.answer:line({ { '> ' .. text, 'ThinkFlowTask' } })
    end
  end)
end

--- The current session's answer, made when there is none yet.
--- @return thinkflow.Answer
function M.answer()
  local bufnr = api.nvim_get_current_buf()
  for _, session in pairs(sessions) do
    if session.answer.buf == bufnr then
      return session.answer
    end
  end
  return session_of(client_of.root(bufnr), false).answer
end

--- @return string what is going on, in a few words; '' when nothing is
function M.status()
  local parts = {}
  for _, run in pairs(runs) do
    local counts = run.applied > 0 and (' ✓%d'):format(run.applied) or ''
    if run.failed > 0 then
      counts = counts .. (' ✗%d'):format(run.failed)
    end
    parts[#parts + 1] = ('ThinkFlow%s: %s'):format(counts, run.doing)
  end
  table.sort(parts)
  return table.concat(parts, ' | ')
end

return M
