-- Applies random edits both to a plain string, as the protocol defines them, and
-- to a buffer; both must come out the same, for every line ending, with and
-- without a final one, and in every encoding of positions. Undo is one step.
local T = dofile(vim.env.HARNESS)
local edit = require('thinkflow.edit')

local seed = tonumber(vim.env.SEED)
math.randomseed(seed)

local pieces = { 'a', 'b', 'ö', '漢', '😀', ' ', '\t', 'word', 'é', '' }

local function random_line()
  local parts = {}
  for i = 1, math.random(0, 6) do
    parts[i] = pieces[math.random(#pieces)]
  end
  return table.concat(parts)
end

local function units(line, encoding)
  -- Characters of a line, each with its length in the encoding.
  local list = {}
  for char in line:gmatch('[%z\1-\127\194-\244][\128-\191]*') do
    local length = encoding == 'utf-8' and #char or (encoding == 'utf-16' and #char == 4) and 2 or 1
    list[#list + 1] = { char = char, length = length }
  end
  return list
end

--- A random position of the document: offset in its text, and as the protocol says it.
local function random_place(lines, ending, eol, encoding)
  local last = eol and #lines or #lines - 1
  local row = math.random(0, last)
  local offset = 0
  for i = 1, row do
    offset = offset + #lines[i] + #ending
  end
  local character = 0
  if row < #lines then
    local chars = units(lines[row + 1], encoding)
    for i = 1, math.random(0, #chars) do
      offset = offset + #chars[i].char
      character = character + chars[i].length
    end
  end
  return { offset = offset, line = row, character = character }
end

local function random_text(ending)
  local parts = { random_line() }
  for _ = 1, math.random(0, 3) - 1 do
    parts[#parts + 1] = ending
    parts[#parts + 1] = random_line()
  end
  return table.concat(parts)
end

local function one_case(number)
  local format = ({ 'unix', 'unix', 'dos', 'mac' })[math.random(4)]
  local ending = ({ unix = '\n', dos = '\r\n', mac = '\r' })[format]
  local encoding = ({ 'utf-16', 'utf-8', 'utf-32' })[math.random(3)]
  local eol = math.random(3) > 1
  local lines = { random_line() .. 'x' }
  for _ = 1, math.random(0, 6) do
    lines[#lines + 1] = random_line()
  end
  local buf = vim.api.nvim_create_buf(true, false)
  vim.api.nvim_buf_set_name(buf, vim.fn.tempname())
  vim.bo[buf].fileformat = format
  vim.bo[buf].fixendofline = false
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].endofline = eol
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
  vim.api.nvim_win_set_buf(0, buf)
  local function whole(list)
    return table.concat(list, ending) .. (eol and ending or '')
  end
  local text = whole(lines)

  local places = {}
  for i = 1, 2 * math.random(1, 3) do
    places[i] = random_place(lines, ending, eol, encoding)
  end
  table.sort(places, function(a, b)
    return a.offset < b.offset
  end)
  local edits, result, from = {}, {}, 0
  for i = 1, #places, 2 do
    local first, second = places[i], places[i + 1]
    local new = random_text(ending)
    edits[#edits + 1] = {
      range = {
        start = { line = first.line, character = first.character },
        ['end'] = { line = second.line, character = second.character },
      },
      newText = new,
    }
    result[#result + 1] = text:sub(from + 1, first.offset) .. new
    from = second.offset
  end
  local want = table.concat(result) .. text:sub(from + 1)
  -- A buffer whose last line break is implied cannot lose it.
  if eol and want:sub(-#ending) ~= ending then
    want = want .. ending
  end
  local shuffled = {}
  for _, e in ipairs(edits) do
    table.insert(shuffled, e)
  end
  local outcome = edit.apply(
    { documentChanges = { { textDocument = { uri = vim.uri_from_bufnr(buf), version = 3 }, edits = shuffled } } },
    encoding,
    {
      version = function()
        return 3
      end,
    }
  )
  local function describe(what)
    return ('%s: case %d of seed %d, %s, %s, endofline %s\nbefore: %s\nedits: %s'):format(
      what,
      number,
      seed,
      format,
      encoding,
      tostring(eol),
      vim.inspect(text),
      vim.inspect(edits)
    )
  end
  T.eq(outcome.applied, true, describe('refused: ' .. tostring(outcome.failureReason)))
  local got = whole(vim.api.nvim_buf_get_lines(buf, 0, -1, false))
  T.eq(got, want, describe('wrong text'))
  vim.cmd('silent undo')
  T.eq(whole(vim.api.nvim_buf_get_lines(buf, 0, -1, false)), text, describe('one undo does not take it back'))
  vim.api.nvim_buf_delete(buf, { force = true })
end

T.run(function()
  for number = 1, tonumber(vim.env.CASES) do
    one_case(number)
  end
end)
