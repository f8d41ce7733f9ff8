--- Keeps cursors, views and marks on their text while a buffer is edited.
local api = vim.api

local M = {}

local function before(row, col, row2, col2)
  return row < row2 or (row == row2 and col < col2)
end

--- Where a position stands after an edit.
--- @param stays boolean text inserted exactly at the position goes after it
local function moved(row, col, e, stays)
  if before(row, col, e.row, e.col) then
    return row, col
  end
  local last = e.row + #e.text - 1
  if before(row, col, e.end_row, e.end_col) then
    -- Inside of the replaced text: as many lines below its start as before.
    return math.min(row, last), col
  end
  if row == e.row and col == e.col and stays then
    return row, col
  end
  if row == e.end_row then
    col = col - e.end_col + #e.text[#e.text] + (#e.text == 1 and e.col or 0)
  end
  return row + last - e.end_row, col
end

--- An insertion at the cursor goes before it when it brings whole lines or the
--- cursor stands on a character, and after it when it starts a new line or the
--- user is typing there.
local function stays_before(e, inserting)
  if #e.text > 1 and e.text[1] == '' then
    return true
  end
  return inserting and not (#e.text > 1 and e.text[#e.text] == '')
end

--- @return { restore: fun() } moves everything along when called after the edits
--- @param bufnr integer
--- @param edits thinkflow.Edit[] last edit first
function M.remember(bufnr, edits)
  local inserting = api.nvim_get_mode().mode:match('^[iR]') ~= nil
  local current = api.nvim_get_current_win()
  local function follow(row, col, typing)
    for _, e in ipairs(edits) do
      row, col = moved(row, col, e, stays_before(e, typing))
    end
    return row, col
  end
  local views, marks = {}, {}
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
  end
  for _, mark in ipairs(vim.fn.getmarklist(bufnr)) do
    local letter = mark.mark:match("^'(%l)$")
    if letter then
      marks[letter] = { mark.pos[2] - 1, math.max(mark.pos[3] - 1, 0) }
    end
  end
  local function restore()
    local count = api.nvim_buf_line_count(bufnr)
    for win, view in pairs(views) do
      if api.nvim_win_is_valid(win) then
        local row, col = follow(view.lnum - 1, view.col, inserting and win == current)
        local top = follow(view.topline - 1, 0, false)
        if row + 1 ~= view.lnum or col ~= view.col then
          view.lnum, view.col, view.curswant = row + 1, col, nil
        end
        view.topline = top + 1
        api.nvim_win_call(win, function()
          vim.fn.winrestview(view)
        end)
      end
    end
    for letter, place in pairs(marks) do
      local row, col = follow(place[1], place[2], false)
      row = math.min(row, count - 1)
      local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
      api.nvim_buf_set_mark(bufnr, letter, row + 1, math.min(col, #line), {})
    end
  end
  return { restore = restore }
end

return M
