--- ThinkFlow for Neovim: see :help thinkflow.
local M = {}

--- Sets options; all are optional, and so is the call.
--- @param options? thinkflow.Options
function M.setup(options)
  if vim.fn.has('nvim-0.10') == 0 then
    error('thinkflow needs Neovim 0.10 or newer')
  end
  require('thinkflow.config').set(options)
end

--- Starts a task.
--- @param task string
--- @param opts? { selection?: thinkflow.Selection, fresh?: boolean, files?: string[], on_done?: fun(result: table) }
--- @return string? run its id
function M.run(task, opts)
  opts = vim.tbl_extend('keep', { task = task }, opts or {})
  opts.bufnr = opts.selection and opts.selection.bufnr or vim.api.nvim_get_current_buf()
  return require('thinkflow.run').start(opts)
end

--- Cancels the running task of this workspace; with true, every task.
--- @param all? boolean
function M.cancel(all)
  require('thinkflow.run').cancel(all)
end

--- Tells the model something more while it works.
--- @param text string
function M.steer(text)
  require('thinkflow.run').steer(text)
end

--- Shows the answer and goes there.
function M.open()
  require('thinkflow.run').answer():open(true)
end

--- Shows the answer, or hides it.
function M.toggle()
  local answer = require('thinkflow.run').answer()
  if answer:window() then
    answer:close()
  else
    answer:open(false)
  end
end

--- Switches the mode of this editor's conversations, or asks which one.
--- @param name? 'ask'|'plan'|'edit'|'auto'
function M.mode(name)
  require('thinkflow.switch').mode(name)
end

--- Switches the model, and its reasoning effort, or asks which model.
--- @param name? string
--- @param effort? string
function M.model(name, effort)
  require('thinkflow.switch').model(name, effort)
end

--- Shows what of the workspace needs trust, and asks about a file.
--- @param path? string
function M.trust(path)
  require('thinkflow.switch').trust(path)
end

--- What is going on, for a statusline; '' when nothing is. Costs nothing while
--- the plugin has not been used.
--- @return string
function M.status()
  local run = package.loaded['thinkflow.run']
  return run and run.status() or ''
end

--- Stops the server; the next task starts it again.
function M.stop()
  require('thinkflow.client').stop()
end

return M
