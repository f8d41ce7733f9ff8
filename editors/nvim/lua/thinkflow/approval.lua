--- Questions of a run: may it delete, run a command, …
local client_of = require('thinkflow.client')
local config = require('thinkflow.config')

local M = {}

local function key_of(run, approval)
  return run.id .. '/approval/' .. approval.id
end

local verbs = { bash = 'run', write = 'change', trust = 'use', keep = 'keep what was made by' }

--- What a question is about, in a few words; files of the workspace as it names them.
local function wanted(run, approval)
  local target = approval.target
  local root = run.session.root
  if approval.action ~= 'bash' and root and vim.startswith(target, root .. '/') then
    target = target:sub(#root + 2)
  end
  return ('%s %s'):format(verbs[approval.action] or approval.action, target)
end

local decisions = {
  once = { '✓ allowed once: ', 'ThinkFlowApplied' },
  session = { '✓ allowed for this session: ', 'ThinkFlowApplied' },
  no = { '✗ denied: ', 'ThinkFlowFailed' },
  ['once+net'] = { '✓ allowed once, with network: ', 'ThinkFlowApplied' },
  ['once+git'] = { '✓ allowed once, with .git: ', 'ThinkFlowApplied' },
  ['once+git+net'] = { '✓ allowed once, with network and .git: ', 'ThinkFlowApplied' },
}

local function answer_approval(run, approval, decision)
  run.session.answer:line({
    decisions[decision],
    { wanted(run, approval) },
  }, key_of(run, approval))
  local client = vim.lsp.get_client_by_id(run.client)
  if client and not run.done then
    client_of.request(
      client,
      'thinkflow/approve',
      { runId = run.id, approvalId = approval.id, decision = decision },
      function(err)
        if err then
          client_of.notify('the answer did not arrive: ' .. (err.message or '?'), vim.log.levels.WARN)
        end
      end
    )
  end
end

local choices = {
  { 'once', 'Allow once' },
  { 'session', 'Allow for this session' },
  { 'once+net', 'Allow once with network' },
  { 'once+git', 'Allow once with .git' },
  { 'once+git+net', 'Allow once with network and .git' },
  { 'no', 'Deny' },
}

--- The answers that mean something for the question.
local function offered(approval)
  local names = approval.choices or { 'once', 'session', 'no' }
  return vim.tbl_filter(function(choice)
    return vim.tbl_contains(names, choice[1])
  end, choices)
end

--- Questions wait for each other: one at a time on the screen.
local questions = {}

local function ask_next()
  local question = questions[1]
  if not question then
    return
  end
  local run, approval = question[1], question[2]
  local answered = false
  local function answer_with(decision)
    if answered then
      return
    end
    answered = true
    answer_approval(run, approval, decision)
    table.remove(questions, 1)
    vim.schedule(ask_next)
  end
  if run.done then -- nobody waits for the answer any more
    table.remove(questions, 1)
    return vim.schedule(ask_next)
  end
  if config.options.approve then
    return config.options.approve(approval, answer_with)
  end
  vim.ui.select(offered(approval), {
    prompt = ('ThinkFlow wants to %s (%s)'):format(wanted(run, approval), approval.rule),
    kind = 'thinkflow_approval',
    format_item = function(choice)
      return choice[2]
    end,
  }, function(choice)
    answer_with(choice and choice[1] or 'no')
  end)
end

--- How many lines of a diff stand under a question.
local most_diff = 40

--- Shows what would be changed, read, or trusted.
local function show_diff(run, approval)
  local diff = vim.split(vim.trim(approval.diff or ''), '\n', { plain = true })
  if #diff == 1 and diff[1] == '' then
    return
  end
  for i, line in ipairs(diff) do
    if i > most_diff then
      run.session.answer:line({ { ('  … %d more lines'):format(#diff - most_diff), 'ThinkFlowNote' } })
      return
    end
    local head = line:sub(1, 3)
    local group = (head == '---' or head == '+++' or head:sub(1, 2) == '@@') and 'ThinkFlowNote'
      or line:sub(1, 1) == '+' and 'ThinkFlowAdded'
      or line:sub(1, 1) == '-' and 'ThinkFlowRemoved'
      or 'ThinkFlowNote'
    run.session.answer:line({ { '  ' .. line, group } })
  end
end

--- Asks, after the questions that wait already.
--- @param run thinkflow.Run
--- @param approval table of an approval.requested event
function M.ask(run, approval)
  run.session.answer:line({
    { '? ', 'ThinkFlowPending' },
    { ('asks to %s (%s)'):format(wanted(run, approval), approval.rule) },
  }, key_of(run, approval))
  show_diff(run, approval)
  table.insert(questions, { run, approval })
  if #questions == 1 then
    vim.schedule(ask_next)
  end
end

return M
