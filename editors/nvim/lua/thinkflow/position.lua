--- Between the server's positions (lines from 0; characters in the client's
--- encoding, UTF-16 unless agreed otherwise) and Neovim's (rows and byte columns
--- from 0).
local M = {}

local since_0_11 = vim.fn.has('nvim-0.11') == 1

--- Byte column of a character; past the end of the line it is the end.
--- @param line string
--- @param character integer
--- @param encoding string
--- @return integer
function M.byte(line, character, encoding)
  if encoding == 'utf-8' then
    return math.min(character, #line)
  end
  if since_0_11 then
    return vim.str_byteindex(line, encoding, character, false)
  end
  local utf32, utf16 = vim.str_utfindex(line)
  local length = encoding == 'utf-32' and utf32 or utf16
  if character >= length then
    return #line
  end
  return vim.str_byteindex(line, character, encoding ~= 'utf-32')
end

--- Character of a byte column; past the end of the line it is the end.
--- @param line string
--- @param column integer
--- @param encoding string
--- @return integer
function M.character(line, column, encoding)
  column = math.min(column, #line)
  if encoding == 'utf-8' then
    return column
  end
  if since_0_11 then
    return vim.str_utfindex(line, encoding, column, false)
  end
  local utf32, utf16 = vim.str_utfindex(line, column)
  return encoding == 'utf-32' and utf32 or utf16
end

return M
