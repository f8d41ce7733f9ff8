-- What the scenarios share. A scenario runs as a coroutine beside Neovim's idle
-- main loop, so that keys are really typed and callbacks really scheduled. What it
-- says to the test goes to stdout, one line each:
--   say TEXT        for the reader of a failure
--   release NAME    let the scripted model go on where it awaits NAME
--   number N=V      a figure for the report
--   failed TEXT, passed
local T = {}

local function out(line)
  -- Neovim writes its messages there too, without ending their lines.
  io.stdout:write('\n' .. line:gsub('\n', '\n  ') .. '\n')
  io.stdout:flush()
end

function T.say(...)
  out('say ' .. table.concat(vim.tbl_map(tostring, { ... }), ' '))
end

function T.release(name)
  out('release ' .. name)
end

function T.number(name, value)
  out(('number %s=%s'):format(name, value))
end

--- Waits for a condition; fails with the words when it does not come true.
function T.wait(what, condition, ms)
  local co = coroutine.running()
  local deadline = vim.uv.hrtime() + (ms or 10000) * 1e6
  local timer = assert(vim.uv.new_timer())
  local over = false
  timer:start(
    0,
    3,
    vim.schedule_wrap(function()
      if over then
        return
      end
      local ok, value = pcall(condition)
      if (ok and value) or vim.uv.hrtime() > deadline then
        over = true
        timer:close()
        coroutine.resume(co, ok and value, not ok and value or nil)
      end
    end)
  )
  local value, err = coroutine.yield()
  if not value then
    error(('waited in vain: %s%s\n%s'):format(what, err and (' (' .. tostring(err) .. ')') or '', T.state()), 2)
  end
  return value
end

--- Lets the main loop run for a while; for what must not happen.
function T.idle(ms)
  local co = coroutine.running()
  vim.defer_fn(function()
    coroutine.resume(co)
  end, ms)
  coroutine.yield()
end

--- Types keys as a user would; waits until the condition holds.
function T.type(keys, what, condition)
  vim.api.nvim_input(keys)
  T.wait(what, condition)
end

function T.text(bufnr)
  local lines = vim.api.nvim_buf_get_lines(bufnr or 0, 0, -1, false)
  return table.concat(lines, '\n') .. (vim.bo[bufnr or 0].eol and '\n' or '')
end

function T.eq(got, want, what)
  if not vim.deep_equal(got, want) then
    error(('%s\n got: %s\nwant: %s'):format(what or 'not equal', vim.inspect(got), vim.inspect(want)), 2)
  end
end

function T.contains(text, part, what)
  if not text:find(part, 1, true) then
    error(('%s\nnot in it: %s\nit is:\n%s'):format(what or 'a part is missing', part, text), 2)
  end
end

function T.answer_buffer()
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(bufnr):match('/ThinkFlow[ %d]*$') then
      return bufnr
    end
  end
end

function T.answer()
  local bufnr = T.answer_buffer()
  return bufnr and table.concat(vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n') or ''
end

--- Messages given with vim.notify, in order.
T.notified = {}

function T.notifications()
  return table.concat(T.notified, '\n')
end

--- For failures: everything that a person would look at.
function T.state()
  local parts = { '--- answer', T.answer(), '--- notified', T.notifications(), '--- status' }
  parts[#parts + 1] = require('thinkflow').status()
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buftype == '' then
      parts[#parts + 1] = '--- buffer ' .. vim.api.nvim_buf_get_name(bufnr)
      parts[#parts + 1] = T.text(bufnr)
    end
  end
  return table.concat(parts, '\n')
end

--- Starts a task with the command and returns a table that gets its result.
function T.task(command)
  local over = {}
  local run = require('thinkflow.run')
  local start = run.start
  run.start = function(opts)
    opts.on_done = function(result)
      for key, value in pairs(result) do
        over[key] = value
      end
      over.done = true
    end
    return start(opts)
  end
  vim.cmd(command)
  run.start = start
  return over
end

function T.finished(task, state)
  T.wait('the task ends', function()
    return task.done
  end, 30000)
  if state then
    T.eq(task.state, state, 'state of the task; reason: ' .. tostring(task.reason) .. '\n' .. T.state())
  end
  return task
end

--- Sets the plugin up with the server under test and the scenario's options.
function T.setup()
  local options = load(vim.env.SETUP)()
  options.cmd = options.cmd or { vim.env.THINKFLOW_BINARY, 'lsp' }
  require('thinkflow').setup(options)
end

function T.run(scenario)
  vim.notify = function(message)
    T.notified[#T.notified + 1] = message
  end
  vim.schedule(function()
    local co = coroutine.create(function()
      local ok, err = xpcall(scenario, debug.traceback)
      out(ok and 'passed' or ('failed ' .. tostring(err)))
      vim.cmd('qall!')
    end)
    coroutine.resume(co)
  end)
end

return T
