-- Waits until each source has marked the open file, and prints the marks and the clients.
local sources = vim.split(vim.env.SOURCES, ',')

local function marked(source)
  for _, mark in ipairs(vim.diagnostic.get(0)) do
    if vim.startswith(mark.source or '', source) then
      return true
    end
  end
  return false
end

vim.wait(60000, function()
  return #vim.tbl_filter(marked, sources) == #sources
end, 50)
local marks = {}
for _, mark in ipairs(vim.diagnostic.get(0)) do
  table.insert(marks, { source = mark.source, code = mark.code, line = mark.lnum, message = mark.message })
end
io.stdout:write(vim.json and vim.json.encode(marks) or vim.fn.json_encode(marks))
vim.cmd('quitall!')
