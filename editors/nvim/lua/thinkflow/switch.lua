--- What can be switched while a conversation goes on, and what is trusted: mode,
--- model, AGENTS.md and the like.
local api = vim.api
local client_of = require('thinkflow.client')
local config = require('thinkflow.config')

local M = {}

--- What each mode lets happen.
local modes = {
  ask = 'answers, changes nothing',
  plan = 'makes a plan, changes nothing',
  edit = 'changes files, asks before what cannot be taken back',
  auto = 'does not ask for deleting and shell commands',
}

--- Calls back with the answer of the server of this buffer; what went wrong is shown.
local function request(method, params, callback)
  local bufnr = api.nvim_get_current_buf()
  client_of.ensure(client_of.root(bufnr), bufnr, function(client, problem)
    if not client then
      return client_of.notify(problem, vim.log.levels.ERROR)
    end
    client_of.flush(client)
    -- An empty table would be sent as a list.
    client_of.request(client, method, next(params) and params or vim.empty_dict(), function(err, result)
      if err then
        return client_of.notify(err.message or vim.inspect(err), vim.log.levels.ERROR)
      end
      vim.schedule(function()
        callback(result)
      end)
    end)
  end)
end

--- What a server that runs already answers at once; nil when it does not. For
--- completion, which cannot wait.
local function ask_now(method)
  local root = client_of.root(api.nvim_get_current_buf())
  for _, client in ipairs(client_of.all()) do
    if client.initialized and client.config.root_dir == root then
      return client_of.request_sync(client, method, vim.empty_dict(), 1500)
    end
  end
end

local function starting_with(words, lead)
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, words)
end

--- A server that is started later begins with it, too.
local function remember(key, value)
  config.options.settings = vim.tbl_extend('force', config.options.settings, { [key] = value })
end

--- Switches the mode, or asks which one.
--- @param name? string
function M.mode(name)
  if name and name ~= '' then
    return request('thinkflow/mode', { mode = name }, function(result)
      remember('mode', result.mode)
      client_of.notify(('the mode is %s: %s'):format(result.mode, modes[result.mode] or ''))
    end)
  end
  request('thinkflow/mode', {}, function(now)
    vim.ui.select(now.modes, {
      prompt = 'ThinkFlow: mode',
      kind = 'thinkflow_mode',
      format_item = function(mode)
        return ('%s %s: %s'):format(mode == now.mode and '●' or ' ', mode, modes[mode] or '')
      end,
    }, function(choice)
      if choice then
        M.mode(choice)
      end
    end)
  end)
end

function M.complete_mode(lead)
  return starting_with({ 'ask', 'auto', 'edit', 'plan' }, lead)
end

--- Switches the model, and how much it thinks, or asks which model.
--- @param name? string
--- @param effort? string
function M.model(name, effort)
  if name and name ~= '' then
    return request('thinkflow/models', { model = name, reasoningEffort = effort }, function(result)
      remember('model', result.model)
      if effort then
        remember('reasoning_effort', effort)
      end
      local thinks = result.reasoningEffort and (', reasoning effort ' .. result.reasoningEffort) or ''
      client_of.notify(('from the next request on the model is %s%s'):format(result.model, thinks))
    end)
  end
  request('thinkflow/models', {}, function(now)
    if now.problem then
      client_of.notify('the endpoint does not list its models: ' .. now.problem, vim.log.levels.WARN)
    end
    vim.ui.select(now.models or {}, {
      prompt = 'ThinkFlow: model',
      kind = 'thinkflow_model',
      format_item = function(model)
        local size = model.context and ('  %dk tokens'):format(math.floor(model.context / 1000)) or ''
        return ('%s %s%s'):format(model.current and '●' or ' ', model.id, size)
      end,
    }, function(choice)
      if choice then
        M.model(choice.id)
      end
    end)
  end)
end

function M.complete_model(lead, line)
  if #vim.split(vim.trim(line:sub(1, #line - #lead)), '%s+') > 1 then
    return starting_with({ 'minimal', 'low', 'medium', 'high' }, lead)
  end
  local now = ask_now('thinkflow/models')
  return starting_with(
    vim.tbl_map(function(model)
      return model.id
    end, now and now.models or {}),
    lead
  )
end

local marks = { trusted = '✓', refused = '✗', changed = '!', unknown = '?' }

--- Shows a file in a window of its own.
--- @return integer window
local function show(file)
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buf, 0, -1, false, vim.split((file.text or ''):gsub('\n$', ''), '\n'))
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  pcall(api.nvim_buf_set_name, buf, 'thinkflow-trust://' .. file.path)
  vim.cmd('belowright split')
  local window = api.nvim_get_current_win()
  api.nvim_win_set_buf(window, buf)
  vim.wo[window].winbar = ('ThinkFlow: %s of %s, %s'):format(file.kind, file.path, file.state)
  if file.path:match('%.md$') then
    vim.bo[buf].syntax = 'markdown'
  end
  return window
end

--- Shows a file that counts only once it is trusted, and asks about it.
--- @param path string
local function answer_for(path)
  request('thinkflow/trust', { ['do'] = 'show', path = path }, function(result)
    local file = result.files[1]
    local window = show(file)
    vim.cmd.redraw()
    local answers = {
      { 'grant', 'Trust exactly this text' },
      { 'refuse', 'Do not use it, and do not ask again' },
      { 'revoke', 'Forget the answer' },
    }
    vim.ui.select(answers, {
      prompt = ('ThinkFlow: %s (%s)'):format(file.path, file.state),
      kind = 'thinkflow_trust',
      format_item = function(answer)
        return answer[2]
      end,
    }, function(choice)
      if api.nvim_win_is_valid(window) then
        api.nvim_win_close(window, true)
      end
      if not choice then
        return
      end
      request('thinkflow/trust', { ['do'] = choice[1], path = file.path, hash = file.hash }, function(after)
        local state = after.files[1] and after.files[1].state or 'asked about again'
        client_of.notify(('%s is %s'):format(file.path, state))
      end)
    end)
  end)
end

--- What counts only once it is trusted: asks about one file, or which one.
--- @param path? string
function M.trust(path)
  if path and path ~= '' then
    return answer_for(path)
  end
  request('thinkflow/trust', {}, function(result)
    if #result.files == 0 then
      return client_of.notify('nothing here needs trust: there is no AGENTS.md and no .thinkflow/verify')
    end
    vim.ui.select(result.files, {
      prompt = 'ThinkFlow: trust',
      kind = 'thinkflow_trust_file',
      format_item = function(file)
        return ('%s %s (%s, %s)'):format(marks[file.state] or '?', file.path, file.kind, file.state)
      end,
    }, function(choice)
      if choice then
        answer_for(choice.path)
      end
    end)
  end)
end

function M.complete_trust(lead)
  local now = ask_now('thinkflow/trust')
  return starting_with(
    vim.tbl_map(function(file)
      return file.path
    end, now and now.files or {}),
    lead
  )
end

return M
