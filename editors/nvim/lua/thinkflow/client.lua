--- The server as a client of Neovim's LSP: starting it, attaching every file
--- buffer to it, and what differs between Neovim 0.10 and later.
local api = vim.api
local config = require('thinkflow.config')
local edit = require('thinkflow.edit')
local history = require('thinkflow.history')

local M = {}

--- The name by which the client is known, also in vim.lsp.config.
M.name = 'thinkflow'

--- The version of the thinkflow/* methods that this plugin speaks.
M.protocol = 1

local since_0_11 = vim.fn.has('nvim-0.11') == 1

--- Called with every thinkflow/event; set by thinkflow.run.
--- @type fun(event: table, client: vim.lsp.Client)
M.on_event = function() end

--- Called when a server ends; set by thinkflow.run.
--- @type fun(client_id: integer, code: integer, signal: integer, expected: boolean)
M.on_exit = function() end

--- What is known of a client beyond Neovim's own record, by client id.
--- @type table<integer, { history: thinkflow.History, waiting: function[], ready: boolean, stopping: boolean? }>
local known = {}

--- @param text string
--- @param level? integer
function M.notify(text, level)
  vim.notify('ThinkFlow: ' .. text, level or vim.log.levels.INFO, { title = 'ThinkFlow' })
end

--- Path of Neovim's LSP log, where the server's stderr goes.
function M.log_path()
  local log = vim.lsp.log
  if log and log.get_filename then
    return log.get_filename()
  end
  return vim.lsp.get_log_path()
end

--- @return boolean sent
function M.request(client, method, params, handler)
  local function answer(err, result)
    if handler then
      handler(err, result)
    end
  end
  if since_0_11 then
    return (client:request(method, params, answer, 0))
  end
  return (client.request(method, params, answer, 0))
end

--- The answer, or nil when there is none in time. Neovim stands still meanwhile.
--- @return table?
function M.request_sync(client, method, params, ms)
  local answer
  if since_0_11 then
    answer = client:request_sync(method, params, ms, 0)
  else
    answer = client.request_sync(method, params, ms, 0)
  end
  return answer and answer.result
end

--- @return boolean sent
function M.send(client, method, params)
  if since_0_11 then
    return client:notify(method, params)
  end
  return client.notify(method, params)
end

--- @return boolean
function M.is_stopped(client)
  if since_0_11 then
    return client:is_stopped()
  end
  return client.is_stopped()
end

--- Sends every change that Neovim still holds back (it collects them for up to
--- 150 ms). Any other message goes after them, so one that changes nothing will do.
function M.flush(client)
  M.send(client, '$/setTrace', { value = client.config.trace or 'off' })
end

--- Whether the buffer is a file that the server should know.
function M.is_file(bufnr)
  return api.nvim_buf_is_loaded(bufnr)
    and vim.bo[bufnr].buftype == ''
    and api.nvim_buf_get_name(bufnr) ~= ''
    and not api.nvim_buf_get_name(bufnr):match('^%a[%w+.-]+://')
end

--- The workspace folder of a buffer.
--- @return string
function M.root(bufnr)
  local options = config.options
  local root = options.root_dir and options.root_dir(bufnr)
  if not root and M.is_file(bufnr) then
    root = vim.fs.root(bufnr, options.root_markers)
  end
  if not root then
    local cwd = assert(vim.uv.cwd())
    root = vim.fs.root(cwd, options.root_markers) or cwd
    -- A file outside of the current folder is a workspace of its own.
    if M.is_file(bufnr) then
      local file = vim.fs.normalize(api.nvim_buf_get_name(bufnr))
      if file:sub(1, #root + 1) ~= vim.fs.normalize(root) .. '/' then
        root = vim.fs.dirname(file)
      end
    end
  end
  return vim.uv.fs_realpath(root) or root
end

--- Records what the server is told of documents: the one thing that a versioned
--- edit can be compared with. Neovim's own record of versions starts again whenever
--- another client attaches.
local function record(client)
  local history = known[client.id].history
  local notify = client.rpc.notify
  client.rpc.notify = function(method, params)
    history:sent(method, params)
    return notify(method, params)
  end
end

local function apply_edit(_, params, context)
  local client = assert(vim.lsp.get_client_by_id(context.client_id))
  M.flush(client)
  local state = known[client.id]
  local result = edit.apply(params.edit, client.offset_encoding, {
    version = function(uri, bufnr)
      return state.history:version(uri)
        or (client.attached_buffers[bufnr] and vim.lsp.util.buf_versions[bufnr])
    end,
    rebase = function(uri, version, edits)
      return state.history:rebase(uri, version, edits)
    end,
  })
  M.flush(client)
  return result
end

local function event(_, params, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  if client and type(params) == 'table' then
    M.on_event(params, client)
  end
end

M.handlers = {
  ['workspace/applyEdit'] = apply_edit,
  ['thinkflow/event'] = event,
  ['thinkflow/diagnostics'] = function(_, params)
    return require('thinkflow.diagnostics').answer(params)
  end,
}

--- Attaches every file buffer: without it the server would not know what is
--- typed there but not yet saved.
local function attach_all(client)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if M.is_file(bufnr) then
      vim.lsp.buf_attach_client(bufnr, client.id)
    end
  end
end

--- Makes a client ours, whoever started it. Harmless when done twice.
--- @param client vim.lsp.Client
function M.adopt(client)
  local state = known[client.id]
  if state and state.ready then
    return
  end
  state = state or { history = history.new(), waiting = {}, ready = false }
  known[client.id] = state
  state.ready = true
  record(client)
  for method, handler in pairs(M.handlers) do
    client.handlers[method] = handler
  end
  local waiting = state.waiting
  state.waiting = {}
  vim.schedule(function()
    attach_all(client)
    for _, callback in ipairs(waiting) do
      callback(client)
    end
  end)
end

local function exited(code, signal, client_id)
  vim.schedule(function()
    local state = known[client_id]
    known[client_id] = nil
    if not state then
      return
    end
    local expected = state.stopping or vim.v.exiting ~= vim.NIL or (code == 0 and signal == 0)
    for _, callback in ipairs(state.waiting) do
      callback(nil, 'the server ended while it was starting')
    end
    M.on_exit(client_id, code, signal, expected)
  end)
end

--- The client configuration: for vim.lsp.start and for lsp/thinkflow.lua.
function M.lsp_config()
  local options = config.options
  local env = options.env
  return {
    name = M.name,
    cmd = options.cmd,
    cmd_env = type(env) == 'function' and env() or env,
    handlers = M.handlers,
    init_options = {
      protocol = M.protocol,
      -- An empty table would be sent as a list.
      settings = next(options.settings) and options.settings or vim.empty_dict(),
      -- Questions come as events and are asked with vim.ui.select.
      approvals = true,
      diagnostics = true,
    },
    on_init = function(client)
      M.adopt(client)
    end,
    on_exit = exited,
  }
end

--- @return vim.lsp.Client[]
function M.all()
  return vim.lsp.get_clients({ name = M.name, _uninitialized = true })
end

local function running(root)
  for _, client in ipairs(M.all()) do
    local folders = client.workspace_folders or {}
    local same = client.config.root_dir == root
    for _, folder in ipairs(folders) do
      same = same or vim.uri_to_fname(folder.uri) == root
    end
    if same and not M.is_stopped(client) then
      return client
    end
  end
end

local function start(root, bufnr)
  local lsp_config = M.lsp_config()
  lsp_config.root_dir = root
  lsp_config.workspace_folders = { { uri = vim.uri_from_fname(root), name = vim.fs.basename(root) } }
  if since_0_11 then
    return vim.lsp.start(lsp_config, { bufnr = bufnr, attach = false })
  end
  return vim.lsp.start_client(lsp_config)
end

--- Calls back with the running client of a workspace, started if need be.
--- @param root string
--- @param bufnr integer
--- @param callback fun(client: vim.lsp.Client?, problem: string?)
function M.ensure(root, bufnr, callback)
  local client = running(root)
  if client and client.initialized then
    M.adopt(client)
    attach_all(client)
    return callback(client)
  end
  if not client then
    local cmd = config.options.cmd[1]
    if vim.fn.executable(cmd) ~= 1 then
      return callback(
        nil,
        ('%q is not an executable: install thinkflow, or name it with require("thinkflow").setup{ cmd = { "/path/to/thinkflow", "lsp" } }'):format(
          cmd
        )
      )
    end
    local ok, id = pcall(start, root, bufnr)
    if not ok or not id then
      return callback(nil, 'the server could not be started: ' .. tostring(id) .. '; log: ' .. M.log_path())
    end
    known[id] = known[id] or { history = history.new(), waiting = {}, ready = false }
    table.insert(known[id].waiting, callback)
    return
  end
  known[client.id] = known[client.id] or { history = history.new(), waiting = {}, ready = false }
  table.insert(known[client.id].waiting, callback)
end

--- Attaches one more file buffer to the servers that run.
function M.attach(bufnr)
  if not M.is_file(bufnr) then
    return
  end
  for _, client in ipairs(M.all()) do
    vim.lsp.buf_attach_client(bufnr, client.id)
  end
end

--- Stops every server.
function M.stop()
  for _, client in ipairs(M.all()) do
    if known[client.id] then
      known[client.id].stopping = true
    end
    if since_0_11 then
      client:stop()
    else
      client.stop()
    end
  end
end

return M
