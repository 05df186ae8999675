"""Writes work.lua: tables, strings and closures, SIZE of them per round."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("work.lua", "w") as file:
    file.write("local state, size = %d, %d\n" % (seed, size))
    file.write('''
local function draw(below)
  state = (state * 1103515245 + 12345) % 2147483648
  return state // 65536 % below
end

local sum = 0
for round = 1, 5 do
  local nodes, names = {}, {}
  for number = 1, size do
    local name = "node" .. draw(1000000)
    local node = { name = name, weight = draw(100), next = {} }
    for edge = 1, draw(5) do
      node.next[edge] = draw(number) + 1
    end
    node.visit = function() return node.weight + #node.next end
    nodes[number], names[name] = node, number
  end
  local parts = {}
  for number = 1, size do
    sum = (sum * 31 + nodes[number].visit()) % 1000000007
    if number % 10 == 0 then
      parts[#parts + 1] = nodes[number].name:rep(3, "-"):upper()
    end
  end
  table.sort(parts)
  sum = (sum + #table.concat(parts, ",")) % 1000000007
  for number = 1, size, 2 do
    nodes[number] = false
  end
  collectgarbage()
end
print(sum)
''')
