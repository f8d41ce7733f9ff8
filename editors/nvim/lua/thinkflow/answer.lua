--- The answer: a markdown buffer that grows while the model writes.
local api = vim.api
local config = require('thinkflow.config')

--- @class thinkflow.Answer
--- @field buf integer
--- @field title string
--- @field after_line boolean the last thing written was a line of our own: swallow the model's line breaks
--- @field reasoning? integer row (from 0) where the reasoning that is being written begins
--- @field reasonings [integer, integer][] first and last row of each finished reasoning
--- @field rows table<string, integer> rows (from 0) of lines of our own that may still change
--- @field root? string folder that the paths in it are relative to
local Answer = {}
Answer.__index = Answer

local M = {}

local ns = api.nvim_create_namespace('thinkflow')

--- @type table<integer, thinkflow.Answer> by buffer
local answers = {}

local highlights = {
  ThinkFlowTask = 'Title',
  ThinkFlowReasoning = 'Comment',
  ThinkFlowApplied = 'DiagnosticOk',
  ThinkFlowFailed = 'DiagnosticError',
  ThinkFlowPending = 'DiagnosticInfo',
  ThinkFlowSkipped = 'Comment',
  ThinkFlowAdded = 'Added',
  ThinkFlowRemoved = 'Removed',
  ThinkFlowNote = 'Comment',
}

local function define_highlights()
  for name, link in pairs(highlights) do
    api.nvim_set_hl(0, name, { link = link, default = true })
  end
end

--- A chunk is a text with its highlight group.
--- @alias thinkflow.Chunk [string, string?]

local function one_line(text)
  return (text:gsub('%s*[\r\n]+%s*', ' '))
end

--- @param title string name of the buffer
--- @return thinkflow.Answer
function M.new(title)
  define_highlights()
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_name(buf, title)
  vim.bo[buf].buftype = 'nofile'
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].swapfile = false
  vim.bo[buf].undolevels = -1
  -- A broken file type plugin must not keep the answer away.
  if not pcall(function()
    vim.bo[buf].filetype = 'markdown'
  end) then
    vim.bo[buf].syntax = 'markdown'
  end
  vim.bo[buf].modifiable = false
  local self = setmetatable({
    buf = buf,
    title = title,
    after_line = false,
    reasoning = nil,
    reasonings = {},
    rows = {},
  }, Answer)
  answers[buf] = self
  api.nvim_create_autocmd('BufWipeout', {
    buffer = buf,
    callback = function()
      answers[buf] = nil
    end,
  })
  api.nvim_create_autocmd('BufWinEnter', {
    buffer = buf,
    callback = function()
      self:prepare(api.nvim_get_current_win())
    end,
  })
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, desc = 'ThinkFlow: close the answer' })
  vim.keymap.set('n', '<CR>', function()
    self:open_file_under_cursor()
  end, { buffer = buf, desc = 'ThinkFlow: open the file of this command' })
  return self
end

function Answer:valid()
  return api.nvim_buf_is_valid(self.buf)
end

--- Folds rows (from 0, both included) in a window.
local function fold(win, first, last)
  api.nvim_win_call(win, function()
    pcall(vim.cmd.fold, { range = { first + 1, last + 1 } })
  end)
end

--- Options of a window that shows the answer.
function Answer:prepare(win)
  local function set(name, value)
    api.nvim_set_option_value(name, value, { win = win, scope = 'local' })
  end
  set('wrap', true)
  set('linebreak', true)
  set('number', false)
  set('relativenumber', false)
  set('signcolumn', 'no')
  set('spell', false)
  set('foldmethod', 'manual')
  set('foldtext', "v:lua.require'thinkflow.answer'.foldtext()")
  set('foldminlines', 0)
  set('foldenable', true)
  api.nvim_win_call(win, function()
    vim.cmd('silent! normal! zE')
  end)
  for _, rows in ipairs(self.reasonings) do
    fold(win, rows[1], rows[2])
  end
end

function M.foldtext()
  local count = vim.v.foldend - vim.v.foldstart + 1
  return ('· reasoning, %d line%s '):format(count, count == 1 and '' or 's')
end

--- Runs a change of the buffer; windows whose cursor is on the last line follow.
function Answer:change(fn)
  if not self:valid() then
    return
  end
  local at_end = {}
  local last = api.nvim_buf_line_count(self.buf)
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    if api.nvim_win_get_cursor(win)[1] >= last then
      at_end[#at_end + 1] = win
    end
  end
  vim.bo[self.buf].modifiable = true
  local ok, err = pcall(fn)
  vim.bo[self.buf].modifiable = false
  vim.bo[self.buf].modified = false
  last = api.nvim_buf_line_count(self.buf)
  for _, win in ipairs(at_end) do
    pcall(api.nvim_win_set_cursor, win, { last, 0 })
  end
  if not ok then
    error(err, 0)
  end
end

function Answer:last_line()
  return api.nvim_buf_get_lines(self.buf, -2, -1, false)[1] or ''
end

function Answer:put(text)
  local row = api.nvim_buf_line_count(self.buf) - 1
  local col = #self:last_line()
  api.nvim_buf_set_text(self.buf, row, col, row, col, vim.split(text, '\n', { plain = true }))
end

--- Starts a new line unless the last one is empty.
function Answer:fresh_line()
  if self:last_line() ~= '' then
    self:put('\n')
  end
end

local function clean(text)
  return (text:gsub('\r\n?', '\n'):gsub('%z', '␀'))
end

--- Appends text of the model.
function Answer:text(text)
  text = clean(text)
  self:end_reasoning()
  if self.after_line then
    text = text:gsub('^%s*\n', '')
    text = text:gsub('^\n+', '')
    if text == '' then
      return
    end
    text = '\n' .. text
    self.after_line = false
  end
  self:change(function()
    self:put(text)
  end)
end

--- Appends reasoning of the model: dimmed, and folded once it is complete.
function Answer:reason(text)
  text = clean(text)
  if not self.reasoning then
    text = text:gsub('^%s+', '')
    if text == '' then
      return
    end
  end
  self:change(function()
    if not self.reasoning then
      self:fresh_line()
      self.after_line = false
      self.reasoning = api.nvim_buf_line_count(self.buf) - 1
    end
    local first = api.nvim_buf_line_count(self.buf) - 1
    self:put(text)
    for row = first, api.nvim_buf_line_count(self.buf) - 1 do
      api.nvim_buf_set_extmark(self.buf, ns, row, 0, {
        id = 1000000 + row,
        end_col = #api.nvim_buf_get_lines(self.buf, row, row + 1, false)[1],
        hl_group = 'ThinkFlowReasoning',
        priority = 200,
      })
    end
  end)
end

function Answer:end_reasoning()
  if not self.reasoning or not self:valid() then
    return
  end
  local first = self.reasoning
  self.reasoning = nil
  self:change(function()
    self:fresh_line()
  end)
  self.after_line = true
  local last = api.nvim_buf_line_count(self.buf) - 2
  while last > first and api.nvim_buf_get_lines(self.buf, last, last + 1, false)[1] == '' do
    last = last - 1
  end
  table.insert(self.reasonings, { first, last })
  for _, win in ipairs(vim.fn.win_findbuf(self.buf)) do
    fold(win, first, last)
  end
end

local function highlight(buf, row, chunks)
  local col = 0
  for _, chunk in ipairs(chunks) do
    local text = one_line(chunk[1])
    if chunk[2] and text ~= '' then
      api.nvim_buf_set_extmark(buf, ns, row, col, {
        end_col = col + #text,
        hl_group = chunk[2],
        priority = 200,
      })
    end
    col = col + #text
  end
end

local function join(chunks)
  local parts = {}
  for i, chunk in ipairs(chunks) do
    parts[i] = one_line(chunk[1])
  end
  return table.concat(parts)
end

--- Writes a line of our own. With a key, a later call with that key replaces it:
--- the buffer only ever grows, so a line stays in its row.
--- @param chunks thinkflow.Chunk[]
--- @param key? string
function Answer:line(chunks, key)
  if not self:valid() then
    return
  end
  self:end_reasoning()
  self:change(function()
    local row = key and self.rows[key]
    if row then
      api.nvim_buf_clear_namespace(self.buf, ns, row, row + 1)
      api.nvim_buf_set_lines(self.buf, row, row + 1, false, { join(chunks) })
    else
      self:fresh_line()
      row = api.nvim_buf_line_count(self.buf) - 1
      self:put(join(chunks) .. '\n')
      self.after_line = true
    end
    highlight(self.buf, row, chunks)
    if key then
      self.rows[key] = row
    end
  end)
end

--- Begins the answer to a task.
function Answer:task(task)
  self:end_reasoning()
  self.rows = {}
  self:change(function()
    self:fresh_line()
    if api.nvim_buf_line_count(self.buf) > 1 then
      self:put('\n')
    end
  end)
  self:line({ { '# ' .. task, 'ThinkFlowTask' } })
end

--- @return integer? window of the current tab page that shows the answer
function Answer:window()
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    if api.nvim_win_get_buf(win) == self.buf then
      return win
    end
  end
end

--- Shows the answer, at its end.
--- @param focus boolean go there
function Answer:open(focus)
  local win = self:window()
  if not win then
    local options = config.options.window
    local vertical = options.split == 'right' or options.split == 'left'
    local size = options.size
    if size < 1 then
      size = math.floor(size * (vertical and vim.o.columns or vim.o.lines))
    end
    win = api.nvim_open_win(self.buf, focus, {
      split = options.split,
      win = -1,
      width = vertical and math.max(size, 20) or nil,
      height = not vertical and math.max(size, 5) or nil,
    })
    self:prepare(win)
    api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(self.buf), 0 })
  elseif focus then
    api.nvim_set_current_win(win)
  end
end

function Answer:close()
  local win = self:window()
  if win and #api.nvim_tabpage_list_wins(0) > 1 then
    api.nvim_win_close(win, false)
  end
end

--- Opens the file of the command line under the cursor in another window.
function Answer:open_file_under_cursor()
  local path = api.nvim_get_current_line():match('^[✓✗…?↶–]+ %S+ (%S+)')
  if not path then
    return
  end
  local file = vim.fs.joinpath(self.root or vim.uv.cwd(), path)
  local target = vim.fn.win_getid(vim.fn.winnr('#'))
  if target == 0 or target == api.nvim_get_current_win() then
    vim.cmd.split()
  else
    api.nvim_set_current_win(target)
  end
  -- Not :edit, which would ask to reload a file that is open and not saved.
  local buf = vim.fn.bufadd(file)
  vim.bo[buf].buflisted = true
  api.nvim_win_set_buf(0, buf)
end

return M
