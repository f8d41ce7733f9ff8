-- For Neovim 0.11 and later: vim.lsp.enable('thinkflow') starts the server with
-- the first file. The plugin's commands use that server.
local client = require('thinkflow.client')
local lsp_config = client.lsp_config()
lsp_config.name = nil
lsp_config.root_dir = function(bufnr, on_dir)
  if client.is_file(bufnr) then
    on_dir(client.root(bufnr))
  end
end
return lsp_config
