# A Rack application: some of a catalogue's items, from Redis, as JSON.
require "json"
require "redis"

ITEMS = 2000
redis = nil

run lambda { |_env|
  redis ||= Redis.new(port: Integer(ENV.fetch("REDIS_PORT")))
  names = redis.mget(*Array.new(40) { "item:#{rand(ITEMS)}" })
  items = names.map { |n| { "name" => n, "tags" => n.to_s.scan(/../).first(8) } }
  text = JSON.generate(items)
  [200, { "content-type" => "application/json", "content-length" => text.bytesize.to_s }, [text]]
}
