--- What language servers say of files, for the server's thinkflow/diagnostics:
--- LSP's own form, by the URIs that were asked for.
local M = {}

local api = vim.api

--- Neovim counts bytes; the protocol counts UTF-16 units.
local function position(bufnr, lnum, col)
  local line = api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_lines(bufnr, lnum, lnum + 1, false)[1]
  if not line then
    return { line = lnum, character = col }
  end
  local _, units = vim.str_utfindex(line, math.min(col, #line))
  return { line = lnum, character = units }
end

--- @param d vim.Diagnostic
local function to_lsp(d)
  local original = type(d.user_data) == 'table' and d.user_data.lsp
  if type(original) == 'table' and original.range and original.message then
    return original
  end
  return {
    range = {
      start = position(d.bufnr, d.lnum, d.col),
      ['end'] = position(d.bufnr, d.end_lnum or d.lnum, d.end_col or d.col),
    },
    severity = d.severity,
    source = d.source,
    code = d.code,
    message = d.message,
  }
end

--- @param params { uris?: string[] }|nil
--- @return { files: { uri: string, diagnostics: table[] }[] }
function M.answer(params)
  local by_name, files = {}, {}
  local function file(uri, name)
    local entry = { uri = uri, diagnostics = {} }
    by_name[name] = entry
    files[#files + 1] = entry
    return entry
  end
  local asked = type(params) == 'table' and type(params.uris) == 'table' and params.uris or nil
  for _, uri in ipairs(asked or {}) do
    file(uri, vim.fs.normalize(vim.uri_to_fname(uri)))
  end
  for _, d in ipairs(vim.diagnostic.get()) do
    local name = vim.fs.normalize(api.nvim_buf_get_name(d.bufnr))
    local entry = by_name[name]
    if not entry and not asked and vim.bo[d.bufnr].buftype == '' and name ~= '' then
      entry = file(vim.uri_from_bufnr(d.bufnr), name)
    end
    if entry then
      entry.diagnostics[#entry.diagnostics + 1] = to_lsp(d)
    end
  end
  return { files = files }
end

return M
