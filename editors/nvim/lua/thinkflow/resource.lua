--- Files that a workspace edit creates, renames or deletes. Each function raises a
--- refusal, and touches nothing, where Neovim's own would truncate or overwrite.
local api = vim.api

local M = {}

local function refuse(format, ...)
  error({ refusal = format:format(...) }, 0)
end

function M.create(change)
  local options = change.options or {}
  local path = vim.uri_to_fname(change.uri)
  if vim.uv.fs_lstat(path) then
    if options.ignoreIfExists and not options.overwrite then
      return
    end
    if not options.overwrite then
      refuse('%s already exists', path)
    end
  end
  local made, err = pcall(vim.fn.mkdir, vim.fs.dirname(path), 'p')
  local file, open_err = io.open(path, 'w')
  if not file then
    refuse('%s could not be created: %s', path, made and open_err or err)
  end
  file:close()
end

function M.rename(change)
  local options = change.options or {}
  local from, to = vim.uri_to_fname(change.oldUri), vim.uri_to_fname(change.newUri)
  if not vim.uv.fs_lstat(from) then
    refuse('%s does not exist', from)
  end
  if vim.uv.fs_lstat(to) and not options.overwrite then
    if options.ignoreIfExists then
      return
    end
    refuse('%s already exists', to)
  end
  local ok, err = pcall(vim.lsp.util.rename, from, to, options)
  if not ok or vim.uv.fs_lstat(from) or not vim.uv.fs_lstat(to) then
    refuse('%s could not be renamed to %s: %s', from, to, tostring(err))
  end
end

function M.delete(change)
  local options = change.options or {}
  local path = vim.uri_to_fname(change.uri)
  local stat = vim.uv.fs_lstat(path)
  if not stat then
    if options.ignoreIfNotExists then
      return
    end
    refuse('%s does not exist', path)
  end
  local flags = stat.type == 'directory' and (options.recursive and 'rf' or 'd') or ''
  if vim.fn.delete(path, flags) ~= 0 then
    refuse('%s could not be deleted', path)
  end
  local bufnr = vim.fn.bufnr('^' .. vim.fn.fnameescape(path) .. '$')
  if bufnr > 0 and not vim.bo[bufnr].modified then
    pcall(api.nvim_buf_delete, bufnr, {})
  end
end

return M
