-- Commands and autocommands. Nothing else is loaded before the first use.
if vim.g.loaded_thinkflow then
  return
end
vim.g.loaded_thinkflow = true

if vim.fn.has('nvim-0.10') == 0 then
  vim.notify('ThinkFlow needs Neovim 0.10 or newer', vim.log.levels.ERROR)
  return
end

local api = vim.api

--- The selection that a command's range means. A range that is just the last
--- characterwise selection stands for exactly those characters.
local function selection(command)
  if command.range == 0 then
    return nil
  end
  local bufnr = api.nvim_get_current_buf()
  local first, last = command.line1 - 1, command.line2 - 1
  local from, to = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  if vim.fn.visualmode() == 'v' and from[2] == command.line1 and to[2] == command.line2 then
    local line = api.nvim_buf_get_lines(bufnr, last, last + 1, false)[1] or ''
    local stop = math.min(to[3], #line)
    -- The end is the last selected character: up to the start of the next one.
    while stop < #line and line:byte(stop + 1) >= 0x80 and line:byte(stop + 1) < 0xC0 do
      stop = stop + 1
    end
    return { bufnr = bufnr, range = { first, from[3] - 1, last, stop } }
  end
  local line = api.nvim_buf_get_lines(bufnr, last, last + 1, false)[1] or ''
  return { bufnr = bufnr, range = { first, 0, last, #line } }
end

local function run(command)
  local chosen = selection(command)
  local function start(task)
    if task and vim.trim(task) ~= '' then
      require('thinkflow').run(task, { selection = chosen, fresh = command.bang })
    end
  end
  if vim.trim(command.args) ~= '' then
    start(command.args)
  else
    vim.ui.input({ prompt = 'ThinkFlow: ' }, start)
  end
end

api.nvim_create_user_command('ThinkFlow', run, {
  nargs = '*',
  range = true,
  bang = true,
  complete = 'file',
  desc = 'Give ThinkFlow a task; a range is sent along; ! begins a new conversation',
})
api.nvim_create_user_command('ThinkFlowCancel', function(command)
  require('thinkflow').cancel(command.bang)
end, { bang = true, desc = 'Cancel the running task; ! every one' })
api.nvim_create_user_command('ThinkFlowSteer', function(command)
  require('thinkflow').steer(command.args)
end, { nargs = '+', desc = 'Tell the model something more while it works' })
api.nvim_create_user_command('ThinkFlowOpen', function()
  require('thinkflow').open()
end, { desc = 'Go to the answer' })
api.nvim_create_user_command('ThinkFlowToggle', function()
  require('thinkflow').toggle()
end, { desc = 'Show or hide the answer' })
api.nvim_create_user_command('ThinkFlowMode', function(command)
  require('thinkflow').mode(command.args)
end, {
  nargs = '?',
  complete = function(lead)
    return require('thinkflow.switch').complete_mode(lead)
  end,
  desc = 'Switch what may be done: ask, plan, edit, auto',
})
api.nvim_create_user_command('ThinkFlowModel', function(command)
  require('thinkflow').model(command.fargs[1], command.fargs[2])
end, {
  nargs = '*',
  complete = function(lead, line)
    return require('thinkflow.switch').complete_model(lead, line)
  end,
  desc = 'Switch the model and its reasoning effort',
})
api.nvim_create_user_command('ThinkFlowTrust', function(command)
  require('thinkflow').trust(command.args)
end, {
  nargs = '?',
  complete = function(lead)
    return require('thinkflow.switch').complete_trust(lead)
  end,
  desc = 'Look at what needs trust (AGENTS.md, .thinkflow/verify) and answer',
})
api.nvim_create_user_command('ThinkFlowStop', function()
  require('thinkflow').stop()
end, { desc = 'Stop the server' })

local group = api.nvim_create_augroup('thinkflow', {})
api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile', 'BufFilePost', 'BufWritePost' }, {
  group = group,
  desc = 'Tell the ThinkFlow server of every file',
  callback = function(args)
    -- After the buffer's options are set; only when a server runs or shall.
    local config = package.loaded['thinkflow.config']
    local client = package.loaded['thinkflow.client']
    if not config then
      return
    end
    vim.schedule(function()
      client = client or require('thinkflow.client')
      if not api.nvim_buf_is_valid(args.buf) or not client.is_file(args.buf) then
        return
      end
      if config.options.autostart then
        client.ensure(client.root(args.buf), args.buf, function(_, problem)
          if problem then
            vim.notify_once('ThinkFlow: ' .. problem, vim.log.levels.ERROR)
          end
        end)
      else
        client.attach(args.buf)
      end
    end)
  end,
})
api.nvim_create_autocmd('LspAttach', {
  group = group,
  desc = 'A ThinkFlow server that something else started',
  callback = function(args)
    local client = vim.lsp.get_client_by_id(args.data.client_id)
    if client and client.name == 'thinkflow' then
      require('thinkflow.run')
      require('thinkflow.client').adopt(client)
    end
  end,
})
