--- The plugin's options. Everything has a default, so calling setup is optional.
local M = {}

--- @class thinkflow.Options
--- @field cmd? string[] The server's command line.
--- @field env? table<string,string>|fun():table<string,string> Extra environment of the server, e.g. the API key from a keychain.
--- @field settings? table The server's settings, with the keys of its configuration file.
--- @field root_markers? string[] A folder that holds one of them is a workspace.
--- @field root_dir? fun(bufnr: integer): string? Chooses the workspace instead of the markers.
--- @field autostart? boolean Start the server with the first file instead of the first task.
--- @field send_current_file? boolean Without a selection, give the current file along with the task.
--- @field window? thinkflow.WindowOptions
--- @field approve? fun(approval: table, answer: fun(decision: string)) Asks instead of vim.ui.select.

--- @class thinkflow.WindowOptions
--- @field open? boolean Show the answer when a task starts.
--- @field split? 'right'|'left'|'below'|'above'
--- @field size? number Columns or lines; below 1: a part of the editor.

--- @type thinkflow.Options
local defaults = {
  cmd = { 'thinkflow', 'lsp' },
  env = {},
  settings = {},
  root_markers = { '.thinkflow', '.git', '.hg', '.svn', '.jj' },
  root_dir = nil,
  autostart = false,
  send_current_file = true,
  window = { open = true, split = 'right', size = 0.4 },
  approve = nil,
}

--- @type thinkflow.Options
M.options = vim.deepcopy(defaults)

local types = {
  cmd = { 'table' },
  env = { 'table', 'function' },
  settings = { 'table' },
  root_markers = { 'table' },
  root_dir = { 'function' },
  autostart = { 'boolean' },
  send_current_file = { 'boolean' },
  window = { 'table' },
  approve = { 'function' },
}

--- Checks and merges. A mistake is an error that names the option.
--- @param options? thinkflow.Options
function M.set(options)
  options = options or {}
  for key, value in pairs(options) do
    local want = types[key]
    if not want then
      error(('thinkflow.setup: unknown option %q; see :help thinkflow-setup'):format(key), 3)
    end
    if not vim.tbl_contains(want, type(value)) then
      error(
        ('thinkflow.setup: option %q must be a %s, not a %s'):format(
          key,
          table.concat(want, ' or '),
          type(value)
        ),
        3
      )
    end
  end
  M.options = vim.tbl_deep_extend('force', defaults, options)
end

return M
