--- :checkhealth thinkflow
local M = {}

local health = vim.health

local function check_version()
  local version = tostring(vim.version())
  if vim.fn.has('nvim-0.10') == 1 then
    health.ok('Neovim ' .. version)
  else
    health.error('Neovim ' .. version .. ' is too old', 'Install Neovim 0.10 or newer')
  end
end

local function check_server()
  local cmd = require('thinkflow.config').options.cmd
  if vim.fn.executable(cmd[1]) ~= 1 then
    health.error(('%q is not an executable'):format(cmd[1]), {
      'Install thinkflow so that it is on the PATH',
      'or name it: require("thinkflow").setup{ cmd = { "/path/to/thinkflow", "lsp" } }',
    })
    return
  end
  local ok, result = pcall(function()
    return vim.system({ cmd[1], 'version' }, { text = true, timeout = 5000 }):wait()
  end)
  if ok and result.code == 0 then
    health.ok(('%s: %s'):format(vim.fn.exepath(cmd[1]), vim.trim(result.stdout or '')))
  else
    health.error(('%s version fails'):format(cmd[1]), ok and vim.trim(result.stderr or '') or tostring(result))
  end
  health.info('Endpoint, key and model: `' .. cmd[1] .. ' doctor` asks them')
end

local function check_clients()
  local client_of = require('thinkflow.client')
  local clients = client_of.all()
  if #clients == 0 then
    health.info('No server runs; the first :ThinkFlow starts it')
  end
  for _, client in ipairs(clients) do
    local own = vim.tbl_get(client.server_capabilities or {}, 'experimental', 'thinkflow')
    local root = client.config.root_dir or '?'
    if not own then
      health.warn(('client %d in %s does not say that it is ThinkFlow'):format(client.id, root))
    elseif own.protocol ~= client_of.protocol then
      health.error(
        ('client %d speaks protocol %s, this plugin %d'):format(client.id, tostring(own.protocol), client_of.protocol),
        'Update the older of thinkflow and this plugin'
      )
    else
      health.ok(('server %s runs in %s (client %d)'):format(own.version or '?', root, client.id))
    end
    local missing = {}
    for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
      if client_of.is_file(bufnr) and not client.attached_buffers[bufnr] then
        missing[#missing + 1] = vim.api.nvim_buf_get_name(bufnr)
      end
    end
    if #missing > 0 then
      health.warn('The server does not know these files, nor what is typed there: ' .. table.concat(missing, ', '))
    end
    if client.handlers['workspace/applyEdit'] ~= client_of.handlers['workspace/applyEdit'] then
      health.error(
        ('client %d has another workspace/applyEdit handler'):format(client.id),
        'Remove it from the client configuration: Neovim\'s own says "applied" for edits that it skipped'
      )
    end
  end
  health.info('Log: ' .. client_of.log_path())
end

function M.check()
  health.start('thinkflow')
  check_version()
  check_server()
  check_clients()
end

return M
