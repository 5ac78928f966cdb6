# A Rack application: small pages, and lists of orders as JSON.
require "json"

ORDERS = (1..9000).map { |n| { "no" => n, "shop" => "shop #{n % 40}", "lines" => [n, n * 3, n * 7], "paid" => n.odd? } }

run lambda { |env|
  text = env["PATH_INFO"] == "/orders" ? JSON.pretty_generate(ORDERS) : "hello\n" * 20
  [200, { "content-type" => "text/plain", "content-length" => text.bytesize.to_s }, [text]]
}
