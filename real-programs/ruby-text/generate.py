"""Writes work.rb: strings, arrays and hashes, SIZE of them."""
import sys

seed, size = int(sys.argv[1]), int(sys.argv[2])
with open("work.rb", "w") as file:
    file.write("state = %d\nsize = %d\n" % (seed, size))
    file.write('''draw = lambda do |below|
  state = (state * 1103515245 + 12345) % 2147483648
  state / 65536 % below
end
lines = Array.new(size) { |at| Array.new(8) { "word#{draw.call(3000)}" + "x" * draw.call(40) }.join(" ") }
index = Hash.new { |hash, word| hash[word] = [] }
lines.each_with_index { |line, at| line.split(" ").each { |word| index[word.upcase] << "#{at}:#{line.length}" } }
sum = 0
index.keys.sort.each do |word|
  text = index[word].reverse.join(",")
  sum = (sum * 31 + text.sum(32) + text.length) % 1_000_000_007
end
puts index.length, sum
''')
