fibers = (1..30).map do |number|
  Fiber.new do
    200.times { |step| Fiber.yield("text %d" % step * number) }
  end
end
201.times { fibers.each { |fiber| fiber.resume if fiber.alive? } }
