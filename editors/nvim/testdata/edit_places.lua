-- Cursors, views, marks and undo while edits come in; and what is refused.
local T = dofile(vim.env.HARNESS)
local edit = require('thinkflow.edit')

local function buffer(lines)
  vim.cmd('silent! %bwipeout!')
  local buf = vim.api.nvim_create_buf(true, false)
  vim.api.nvim_buf_set_name(buf, vim.fn.tempname())
  vim.api.nvim_win_set_buf(0, buf)
  vim.api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].undolevels = vim.bo[buf].undolevels
  return buf
end

local function change(row, col, end_row, end_col, text)
  return {
    range = { start = { line = row, character = col }, ['end'] = { line = end_row, character = end_col } },
    newText = text,
  }
end

local documents = {
  version = function()
    return 5
  end,
  rebase = function() end,
}

local function apply(buf, edits, version)
  return edit.apply({
    documentChanges = { { textDocument = { uri = vim.uri_from_bufnr(buf), version = version or 5 }, edits = edits } },
  }, 'utf-16', documents)
end

local function applied(buf, edits)
  local result = apply(buf, edits)
  T.eq(result, { applied = true }, 'result')
end

local function numbered(n)
  local lines = {}
  for i = 1, n do
    lines[i] = 'line ' .. i
  end
  return lines
end

local tests = {}

function tests.cursor_follows_its_text()
  local cases = {
    -- cursor (line from 1, column from 0), edit, cursor afterwards
    { 'lines above', { 5, 3 }, change(1, 0, 1, 0, 'new\nnew\n'), { 7, 3 } },
    { 'lines at the cursor line', { 5, 0 }, change(4, 0, 4, 0, 'new\n'), { 6, 0 } },
    { 'line below', { 5, 3 }, change(5, 0, 5, 0, 'new\n'), { 5, 3 } },
    { 'text before it in the line', { 5, 3 }, change(4, 0, 4, 2, 'longer'), { 5, 7 } },
    { 'text after it in the line', { 5, 0 }, change(4, 3, 4, 4, 'x'), { 5, 0 } },
    { 'its line goes', { 5, 3 }, change(3, 0, 6, 0, 'only\n'), { 5, 3 } },
    { 'two lines above go', { 5, 3 }, change(0, 0, 2, 0, ''), { 3, 3 } },
  }
  for _, case in ipairs(cases) do
    local buf = buffer(numbered(9))
    vim.api.nvim_win_set_cursor(0, case[2])
    applied(buf, { case[3] })
    T.eq(vim.api.nvim_win_get_cursor(0), case[4], case[1])
  end
end

function tests.views_stay_on_their_text()
  local buf = buffer(numbered(400))
  vim.cmd('200 | normal! zt')
  vim.cmd('split | 300 | normal! zt')
  local lower, upper = unpack(vim.fn.win_findbuf(buf))
  local function tops()
    local t = {}
    for _, win in ipairs({ lower, upper }) do
      local top = vim.api.nvim_win_call(win, function()
        return vim.fn.line('w0')
      end)
      t[#t + 1] = vim.api.nvim_buf_get_lines(buf, top - 1, top, false)[1]
    end
    return t
  end
  local before = tops()
  applied(buf, { change(0, 0, 0, 0, 'a\nb\nc\n'), change(250, 0, 251, 0, '') })
  T.eq(tops(), before, 'first lines of the windows')
  applied(buf, { change(0, 0, 3, 0, '') })
  T.eq(tops(), before, 'first lines of the windows after removing lines')
end

function tests.marks_stay_on_their_text()
  local buf = buffer(numbered(9))
  vim.api.nvim_buf_set_mark(buf, 'a', 5, 2, {})
  vim.api.nvim_buf_set_mark(buf, 'b', 2, 0, {})
  applied(buf, { change(0, 0, 0, 0, 'x\n'), change(3, 0, 6, 0, 'one\ntwo\nthree\n') })
  T.eq(vim.api.nvim_buf_get_mark(buf, 'a'), { 6, 2 }, 'mark in the replaced lines')
  T.eq(vim.api.nvim_buf_get_mark(buf, 'b'), { 3, 0 }, 'mark above them')
end

function tests.each_edit_is_one_undo()
  local buf = buffer({ 'one', 'two', 'three' })
  applied(buf, { change(0, 0, 0, 3, 'ONE'), change(2, 0, 2, 5, 'THREE') })
  applied(buf, { change(1, 0, 1, 3, 'TWO') })
  vim.cmd('silent undo')
  T.eq(T.text(buf), 'ONE\ntwo\nTHREE\n', 'after one undo')
  vim.cmd('silent undo')
  T.eq(T.text(buf), 'one\ntwo\nthree\n', 'after two')
  vim.cmd('silent redo | silent redo')
  T.eq(T.text(buf), 'ONE\nTWO\nTHREE\n', 'redone')
end

function tests.undo_of_a_buffer_that_is_not_shown()
  local buf = buffer({ 'one', 'two' })
  vim.cmd('hide enew')
  applied(buf, { change(0, 0, 0, 3, 'ONE') })
  applied(buf, { change(1, 0, 1, 3, 'TWO') })
  vim.api.nvim_buf_call(buf, function()
    vim.cmd('silent undo')
  end)
  T.eq(T.text(buf), 'ONE\ntwo\n', 'after one undo')
end

-- Typing goes on while edits come in. Without blocks of their own, undoing would
-- lose lines of the user.
function tests.undo_while_typing()
  local buf = buffer({ 'one', 'two', 'three', 'four', 'five' })
  local function typed(keys, want)
    T.type(keys, 'typing ' .. keys, function()
      return T.text(buf) == want
    end)
  end
  typed('2GAxx', 'one\ntwoxx\nthree\nfour\nfive\n')
  applied(buf, { change(3, 0, 3, 4, 'FOUR') })
  typed('yy<CR>new', 'one\ntwoxxyy\nnew\nthree\nFOUR\nfive\n')
  applied(buf, { change(5, 0, 5, 4, 'FIVE') })
  applied(buf, { change(0, 0, 0, 0, 'zero\n') })
  typed('zz', 'zero\none\ntwoxxyy\nnewzz\nthree\nFOUR\nFIVE\n')
  T.type('<Esc>', 'normal mode', function()
    return vim.api.nvim_get_mode().mode == 'n'
  end)
  for _, want in ipairs({
    'zero\none\ntwoxxyy\nnew\nthree\nFOUR\nFIVE\n',
    'one\ntwoxxyy\nnew\nthree\nFOUR\nFIVE\n',
    'one\ntwoxxyy\nnew\nthree\nFOUR\nfive\n',
    'one\ntwoxx\nthree\nFOUR\nfive\n',
    'one\ntwoxx\nthree\nfour\nfive\n',
    'one\ntwo\nthree\nfour\nfive\n',
  }) do
    typed('u', want)
  end
end

function tests.refusals_change_nothing()
  local function refused(what, result, part)
    T.eq(result.applied, false, what)
    T.contains(result.failureReason, part, what)
  end
  local buf = buffer({ 'one', 'two' })
  refused('older version', apply(buf, { change(0, 0, 0, 3, 'x') }, 4), 'stale')
  refused('newer version', apply(buf, { change(0, 0, 0, 3, 'x') }, 6), 'stale')
  refused('past the end', apply(buf, { change(7, 0, 7, 0, 'x') }), 'past the end')
  refused('overlap', apply(buf, { change(0, 0, 0, 3, 'x'), change(0, 2, 1, 0, 'y') }), 'overlap')
  refused('backwards', apply(buf, { change(1, 0, 0, 0, 'x') }), 'before it starts')
  vim.bo[buf].modifiable = false
  refused('not modifiable', apply(buf, { change(0, 0, 0, 3, 'x') }), 'not modifiable')
  vim.bo[buf].modifiable = true
  vim.bo[buf].readonly = true
  refused('read-only', apply(buf, { change(0, 0, 0, 3, 'x') }), 'read-only')
  vim.bo[buf].readonly = false
  T.eq(T.text(buf), 'one\ntwo\n', 'the text after refusals')

  -- The second document is stale: the first must stay as it is.
  local other = vim.api.nvim_create_buf(true, false)
  vim.api.nvim_buf_set_name(other, vim.fn.tempname())
  vim.api.nvim_buf_set_lines(other, 0, -1, false, { 'other' })
  local result = edit.apply({
    documentChanges = {
      { textDocument = { uri = vim.uri_from_bufnr(buf), version = 5 }, edits = { change(0, 0, 0, 3, 'x') } },
      { textDocument = { uri = vim.uri_from_bufnr(other), version = 4 }, edits = { change(0, 0, 0, 3, 'x') } },
    },
  }, 'utf-16', documents)
  refused('second document stale', result, 'stale')
  T.eq(result.failedChange, 1, 'index of the failed change')
  T.eq(T.text(buf), 'one\ntwo\n', 'first document')
end

function tests.files()
  local dir = vim.fn.tempname()
  local path = dir .. '/sub/a.txt'
  local uri = vim.uri_from_fname(path)
  local function go(change_)
    return edit.apply({ documentChanges = { change_ } }, 'utf-16', documents)
  end
  T.eq(go({ kind = 'create', uri = uri }), { applied = true }, 'create')
  vim.fn.writefile({ 'kept' }, path)
  T.eq(go({ kind = 'create', uri = uri }).applied, false, 'create over a file')
  T.eq(go({ kind = 'create', uri = uri, options = { ignoreIfExists = true } }), { applied = true }, 'ignoreIfExists')
  T.eq(vim.fn.readfile(path), { 'kept' }, 'the file that was there')
  local to = vim.uri_from_fname(dir .. '/b.txt')
  T.eq(go({ kind = 'rename', oldUri = uri, newUri = to }), { applied = true }, 'rename')
  T.eq(go({ kind = 'rename', oldUri = uri, newUri = to }).applied, false, 'rename of nothing')
  T.eq(vim.fn.readfile(dir .. '/b.txt'), { 'kept' }, 'renamed')
  T.eq(go({ kind = 'delete', uri = to }), { applied = true }, 'delete')
  T.eq(go({ kind = 'delete', uri = to }).applied, false, 'delete of nothing')
  T.eq(go({ kind = 'sing', uri = to }).applied, false, 'unknown kind')
end

T.run(function()
  local names = vim.tbl_keys(tests)
  table.sort(names)
  for _, name in ipairs(names) do
    T.say(name)
    tests[name]()
  end
end)
